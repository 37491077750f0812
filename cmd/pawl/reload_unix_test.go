//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pawl/client"
)

func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pawl.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("log_level = \"info\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", file).ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	level := func() string {
		t.Helper()
		v, err := c.Do(t.Context(), "CONFIG", "GET", "log_level")
		if err != nil {
			t.Fatal(err)
		}
		return v.Field("log_level").Text
	}
	write("log_level = \"debug\"\nkeep = \"1h\"\nverify_bodies = 0\n")
	s.stderr.wait(t, "msg=changed option=log-level from=info to=debug")
	s.stderr.wait(t, "msg=changed option=keep from=0s to=1h0m0s")
	s.stderr.wait(t, `needs a restart" option=verify-bodies now=1GiB then=0`)
	if got := level(); got != "debug" {
		t.Errorf("log_level is %s, want debug", got)
	}
	write("log_levle = \"info\"\n")
	s.stderr.wait(t, "nothing has changed.*did you mean log_level")
	if got := level(); got != "debug" {
		t.Errorf("after a bad file log_level is %s, want debug as before", got)
	}
	s.end(t)
}

// TestReloadAccess: limits, users, accounts and names of the dashboard change
// while the daemon runs, by SIGHUP and by CONFIG SET, and a file that would open
// the door changes nothing.
func TestReloadAccess(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pawl.toml")
	hup := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	const users = "[users]\nops = \"on >o ~* +@all\"\n"
	if err := os.WriteFile(file, []byte("admin_host_names = [\"one.example\"]\n"+users+"[accounts]\nop = \"first\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", file, "--admin-addr", "127.0.0.1:0", "--max-clients", "900").ready(t)
	admin := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	c := client.New(client.Options{Addr: s.sock, User: "ops", Password: "o"})
	defer c.Close()
	config := func(name string) string {
		t.Helper()
		v, err := c.Do(t.Context(), "CONFIG", "GET", name)
		if err != nil {
			t.Fatal(err)
		}
		return v.Field(name).Text
	}
	visit := func(host, password string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.SetBasicAuth("op", password)
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		return reply.StatusCode
	}
	enqueue := func() error {
		_, err := c.Do(t.Context(), "ENQUEUE", "q", "x")
		return err
	}
	if err := enqueue(); err != nil {
		t.Fatal(err)
	}
	if got := visit("one.example", "first"); got != http.StatusOK {
		t.Errorf("by a name of the configuration: got %d, want 200", got)
	}

	hup("admin_host_names = [\"two.example\"]\nmax_memory = 1\n" + users + "worker = \"on >w ~* +@work\"\n[accounts]\nop = \"second\"\n")
	s.stderr.wait(t, `msg=changed option=users from="1 of them" to="2 of them"`)
	s.stderr.wait(t, "msg=changed option=accounts")
	s.stderr.wait(t, "msg=changed option=max-memory from=0 to=1B")
	if one, two, old := visit("one.example", "second"), visit("two.example", "second"), visit("127.0.0.1", "first"); one != 403 || two != 200 || old != 401 {
		t.Errorf("old name %d, new name %d, old password %d; want 403, 200, 401", one, two, old)
	}
	worker := client.New(client.Options{Addr: s.sock, User: "worker", Password: "w"})
	defer worker.Close()
	if err := worker.Ping(t.Context()); err != nil {
		t.Errorf("the new user: %v", err)
	}
	if err := enqueue(); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("with a byte of memory: got %v, want OOM", err)
	}

	for name, value := range map[string]string{"max_memory": "0", "max_clients": "800", "max_http_clients": "70", "max_http_buffers": "16MiB", "max_buffers": "64MiB", "max_waiters": "7", "max_disk": "1TiB", "idle_timeout": "1h0m0s", "admin_host_names": "a.example,b.example",
		"keep": "2h0m0s", "snapshot_bytes": "1MiB", "snapshot_interval": "1m0s", "snapshot_rate": "8MiB", "scrub_rate": "0", "metrics_queues": "5", "log_level": "warn"} {
		if _, err := c.Do(t.Context(), "CONFIG", "SET", name, value); err != nil {
			t.Errorf("CONFIG SET %s: %v", name, err)
		}
		if got := config(name); got != value {
			t.Errorf("CONFIG GET %s: got %q, want %q", name, got, value)
		}
	}
	if err := enqueue(); err != nil {
		t.Errorf("without the limit: %v", err)
	}
	if got := config("maxclients"); got != "800" {
		t.Errorf("the edge takes %s clients, want 800", got)
	}
	for name, value := range map[string]string{"max_clients": "0", "max_memory": "lots", "keep": "-1h", "metrics_queues": "0", "snapshot_bytes": "1", "generation_size": "8MiB", "password_file": "/etc/hostname", "dir": "x"} {
		if _, err := c.Do(t.Context(), "CONFIG", "SET", name, value); err == nil {
			t.Errorf("CONFIG SET %s %s was taken", name, value)
		}
	}
	// A reload forgets CONFIG SET, and the command line still wins over the file.
	hup("admin_host_names = [\"two.example\"]\nmax_clients = 10\n" + users + "[accounts]\nop = \"second\"\n")
	s.stderr.wait(t, "msg=changed option=max-clients from=800 to=900")
	if _, err := worker.Do(t.Context(), "PING"); err == nil {
		t.Error("a user that is gone may still ping")
	}
	hup(users + "broken = \"on what\"\n")
	s.stderr.wait(t, "nothing has changed.*users.broken")
	if got := visit("two.example", "second"); got != http.StatusOK {
		t.Errorf("after a bad file: got %d, want 200 as before", got)
	}
	s.end(t)
}
