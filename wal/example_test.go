package wal_test

import (
	"fmt"
	"log"
	"os"

	"pawl/internal/vfs"
	"pawl/wal"
)

// A log is begun behind what recovery found, which is nothing in a new
// directory, and read from its start.
func Example() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	l, err := wal.Begin(wal.Options{Dir: dir}, wal.End{Store: wal.StoreID{1}})
	if err != nil {
		log.Fatal(err)
	}
	head, body := []byte("enqueue 1 mail"), []byte("hello")
	g, err := l.Open(wal.RecordBytes(len(head), len(body)))
	if err != nil {
		log.Fatal(err)
	}
	pos := g.Add(head, body)
	l.Seal(g, 1000, 1700000000000)
	if err := l.Commit(g); err != nil { // from here on it is on disk
		log.Fatal(err)
	}
	payload, err := l.Read(pos, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", payload)
	if err := l.Close(); err != nil {
		log.Fatal(err)
	}

	h, err := wal.Find(vfs.OS{}, dir, wal.FindOptions{Settle: true})
	if err != nil {
		log.Fatal(err)
	}
	r, err := h.Reader(wal.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for r.Next() {
		for k, rec := range r.Group().Records {
			fmt.Printf("%d.%d %s: %d bytes\n", r.Group().LSN, k, rec.Head, rec.Pos.Length)
		}
	}
	if err := r.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("closed:", r.End().Closed)
	// Output:
	// hello
	// 1.0 enqueue 1 mail: 5 bytes
	// closed: true
}
