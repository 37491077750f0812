package migrate_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/redcon"
)

// fakeRedis has the commands that an import reads and its tests write with.
type fakeRedis struct {
	mu      sync.Mutex
	strings map[string]string
	expires map[string]time.Time
	lists   map[string][]string
	hashes  map[string]map[string]string
	zsets   map[string]map[string]float64
	written int    // commands that change something
	ranged  func() // called after each ZRANGE
}

// startFake serves one on loopback and gives its URL.
func startFake(t *testing.T) (*fakeRedis, string) {
	t.Helper()
	f := &fakeRedis{
		strings: map[string]string{}, expires: map[string]time.Time{}, lists: map[string][]string{},
		hashes: map[string]map[string]string{}, zsets: map[string]map[string]float64{},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		redcon.Serve(l, func(c redcon.Conn, cmd redcon.Command) {
			f.mu.Lock()
			defer f.mu.Unlock()
			args := make([]string, len(cmd.Args))
			for i, a := range cmd.Args {
				args[i] = string(a)
			}
			f.serve(c, args)
		}, nil, nil)
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return f, "redis://" + l.Addr().String()
}

// startRealRedis starts a redis-server on a socket below the test's directory.
func startRealRedis(t *testing.T) string {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("runs a real redis-server: set PAWL_E2E=1")
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("PAWL_E2E=1 and no redis-server")
	}
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return (&url.URL{Scheme: "unix", Path: socket}).String()
		}
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not answer")
		}
	}
}

func (f *fakeRedis) serve(c redcon.Conn, args []string) {
	name := strings.ToLower(args[0])
	if slices.Contains([]string{"set", "lpush", "hset", "zadd", "del", "rpop"}, name) {
		f.written++
	}
	switch name {
	case "set":
		f.strings[args[1]] = args[2]
		if len(args) == 5 {
			n, _ := strconv.Atoi(args[4])
			unit := time.Second
			if strings.EqualFold(args[3], "px") {
				unit = time.Millisecond
			}
			f.expires[args[1]] = time.Now().Add(time.Duration(n) * unit)
		}
		c.WriteString("OK")
	case "get":
		if v, ok := f.strings[args[1]]; ok {
			c.WriteBulkString(v)
		} else {
			c.WriteNull()
		}
	case "pttl":
		switch at, ok := f.expires[args[1]]; {
		case ok:
			c.WriteInt64(time.Until(at).Milliseconds())
		case f.strings[args[1]] != "":
			c.WriteInt(-1)
		default:
			c.WriteInt(-2)
		}
	case "lpush":
		for _, v := range args[2:] {
			f.lists[args[1]] = append([]string{v}, f.lists[args[1]]...)
		}
		c.WriteInt(len(f.lists[args[1]]))
	case "lrange":
		writeStrings(c, between(f.lists[args[1]], args[2], args[3]))
	case "hset":
		if f.hashes[args[1]] == nil {
			f.hashes[args[1]] = map[string]string{}
		}
		for i := 2; i+1 < len(args); i += 2 {
			f.hashes[args[1]][args[i]] = args[i+1]
		}
		c.WriteInt((len(args) - 2) / 2)
	case "hgetall":
		var all []string
		for k, v := range f.hashes[args[1]] {
			all = append(all, k, v)
		}
		writeStrings(c, all)
	case "zadd":
		if f.zsets[args[1]] == nil {
			f.zsets[args[1]] = map[string]float64{}
		}
		score, _ := strconv.ParseFloat(args[2], 64)
		f.zsets[args[1]][args[3]] = score
		c.WriteInt(1)
	case "zrange":
		var members []string
		set := f.zsets[args[1]]
		for m := range set {
			members = append(members, m)
		}
		sort.Slice(members, func(i, j int) bool { return set[members[i]] < set[members[j]] })
		var all []string
		for _, m := range between(members, args[2], args[3]) {
			all = append(all, m, strconv.FormatFloat(set[m], 'f', -1, 64))
		}
		if f.ranged != nil {
			f.ranged()
		}
		writeStrings(c, all)
	case "type":
		c.WriteString(f.kind(args[1]))
	case "scan":
		match, kind := "*", ""
		for i := 2; i+1 < len(args); i += 2 {
			switch strings.ToLower(args[i]) {
			case "match":
				match = args[i+1]
			case "type":
				kind = args[i+1]
			}
		}
		var found []string
		for _, key := range f.keys() {
			ok, _ := path.Match(strings.ReplaceAll(match, "/", ":"), strings.ReplaceAll(key, "/", ":"))
			if ok && (kind == "" || kind == f.kind(key)) {
				found = append(found, key, key) // a key may come twice
			}
		}
		c.WriteArray(2)
		c.WriteBulkString("0")
		writeStrings(c, found)
	default:
		c.WriteError("ERR unknown command")
	}
}

func (f *fakeRedis) keys() []string {
	var all []string
	for k := range f.strings {
		all = append(all, k)
	}
	for k := range f.lists {
		all = append(all, k)
	}
	for k := range f.hashes {
		all = append(all, k)
	}
	return all
}

func (f *fakeRedis) kind(key string) string {
	switch {
	case f.lists[key] != nil:
		return "list"
	case f.hashes[key] != nil:
		return "hash"
	case f.zsets[key] != nil:
		return "zset"
	case f.strings[key] != "":
		return "string"
	}
	return "none"
}

// between is LRANGE's and ZRANGE's part of a list.
func between(list []string, from, to string) []string {
	i, _ := strconv.Atoi(from)
	j, _ := strconv.Atoi(to)
	if i < 0 {
		i = max(0, len(list)+i)
	}
	if j < 0 {
		j = len(list) + j
	}
	j = min(j, len(list)-1)
	if i > j {
		return nil
	}
	return list[i : j+1]
}

func writeStrings(c redcon.Conn, all []string) {
	c.WriteArray(len(all))
	for _, s := range all {
		c.WriteBulkString(s)
	}
}

// open connects a test to a source.
func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.Protocol, o.DisableIdentity = 2, true
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}
