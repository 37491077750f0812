package wal_test

import (
	"bytes"
	"fmt"
	"testing"

	"pawl/internal/vfs"
	"pawl/wal"
)

var testStore = wal.StoreID{1, 2, 3}

func recoverEnd(t *testing.T, fsys vfs.FS, dir string) (wal.End, []string) {
	t.Helper()
	h, err := wal.Find(fsys, dir, wal.FindOptions{Store: testStore, Settle: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r.Next() {
		for k, rec := range r.Group().Records {
			got = append(got, fmt.Sprintf("%d.%d %s %.20s %d", r.Group().LSN, k, rec.Head, rec.Body, len(rec.Body)))
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.End(), got
}

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	end := wal.End{Store: testStore}
	var want []string
	for start := range 4 {
		l, err := wal.Begin(wal.Options{Dir: dir, GenerationBytes: wal.MinGenerationBytes}, end)
		if err != nil {
			t.Fatal(err)
		}
		var poss []wal.Pos
		var bodies [][]byte
		for i := range 60 {
			head, body := fmt.Appendf(nil, "h%d-%d", start, i), bytes.Repeat([]byte{byte('a' + i%26)}, i*37)
			if i == 30 {
				body = bytes.Repeat([]byte{'B'}, 100000)
			}
			n := wal.RecordBytes(len(head), len(body))
			var g *wal.Group
			for {
				news := l.Prepared()
				if g, err = l.Open(n); err == nil {
					break
				}
				t.Log(i, err)
				<-news
			}
			poss = append(poss, g.Add(head, body))
			bodies = append(bodies, body)
			want = append(want, fmt.Sprintf("%d.%d %s %.20s %d", g.LSN(), 0, head, body, len(body)))
			l.Seal(g, int64(i), int64(i)+1000)
			if err := l.Commit(g); err != nil {
				t.Fatal(err)
			}
		}
		for i, pos := range poss {
			got, err := l.Read(pos, nil)
			if err != nil || !bytes.Equal(got, bodies[i]) {
				t.Fatal(i, pos, err)
			}
		}
		t.Logf("%+v", l.Stats())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		end, got = recoverEnd(t, vfs.OS{}, dir)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
		t.Logf("%+v", end)
		if !end.Closed || end.Cut != 0 {
			t.Error("not closed")
		}
	}
}
