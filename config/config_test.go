package config_test

import (
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/config"
)

// environment is a lookup over pairs of name and value.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pawl.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedence(t *testing.T) {
	file := writeFile(t, "dir = \"from-file\"\nmax_clients = 7\nsync = \"250ms\"\nhttp_tls = false\n")
	set, err := config.Load([]string{"--config", file, "--dir", "from-flag"},
		environment("PAWL_DIR", "from-env", "PAWL_SYNC", "never"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ name, value, origin string }{
		{"dir", "from-flag", "flag"},
		{"sync", "never", "env PAWL_SYNC"},
		{"max-clients", "7", "file " + file},
		{"generation-size", "4MiB", "default"},
	} {
		if o := set.Option(want.name); o.Value != want.value || o.Origin != want.origin {
			t.Errorf("%s is %q from %q, want %q from %q", want.name, o.Value, o.Origin, want.value, want.origin)
		}
	}
	if c := set.Config; c.Dir != "from-flag" || c.Sync != config.SyncNever || c.MaxClients != 7 || c.GenerationSize != 4<<20 {
		t.Errorf("got %q %v %d %d", c.Dir, c.Sync, c.MaxClients, c.GenerationSize)
	}
}

func TestBackendMemoryIsEphemeral(t *testing.T) {
	set, err := config.Load([]string{"--backend", "memory"}, environment())
	if err != nil {
		t.Fatal(err)
	}
	if !set.Config.Ephemeral || set.Option("ephemeral").Value != "true" || set.Option("ephemeral").Origin != "flag" {
		t.Errorf("got %v, %+v, want true from the flag", set.Config.Ephemeral, set.Option("ephemeral"))
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		env  []string
		file string
		want string // in the error
	}{
		{name: "unknown key with a near one", file: "snapshot_byte = 1", want: "unknown key snapshot_byte, did you mean snapshot_bytes?"},
		{name: "unknown key far from all", file: "frobnicate = 1", want: "unknown key frobnicate"},
		{name: "a table where a value belongs", file: "[dir]\na = 1", want: "dir: want a string"},
		{name: "a file does not name a file", file: "config = \"x\"", want: "unknown key config"},
		{name: "no TOML, with its line", file: "dir = \"a\"\naddr = = 1", want: "pawl.toml:2:"},
		{name: "a bad value in the file", file: "sync = \"sometimes\"", want: "sync: \"sometimes\": want always"},
		{name: "a bad value that is outvoted", file: "sync = \"sometimes\"", args: []string{"--sync", "always"}, want: "sync: \"sometimes\": want always"},
		{name: "a bad value in the environment", env: []string{"PAWL_MAX_DISK", "lots"}, want: "PAWL_MAX_DISK: \"lots\""},
		{name: "a file that is not there", args: []string{"--config", "/nonexistent/pawl.toml"}, want: "/nonexistent/pawl.toml"},
		{name: "open to others without a login", args: []string{"--addr", "0.0.0.0:6380"}, want: "nobody has to log in"},
		{name: "admin open to others without a login", args: []string{"--admin-addr", ":7778"}, want: "nobody has to log in"},
		{name: "no port", args: []string{"--addr", "localhost"}, want: "no host:port"},
		{name: "certificate without key", args: []string{"--tls-cert", "x"}, want: "needs tls-key"},
		{name: "generation too small", args: []string{"--generation-size", "1KiB"}, want: "below 16KiB"},
		{name: "negative time", args: []string{"--keep", "-1s"}, want: "negative"},
		{name: "existing and ephemeral", args: []string{"--existing", "--ephemeral"}, want: "no sense"},
		{name: "nothing to reach it by", args: []string{"--addr=", "--http-addr="}, want: "nobody could reach"},
		{name: "empty password file", args: []string{"--password-file", os.DevNull}, want: "is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.file != "" {
				test.env = append(test.env, "PAWL_CONFIG", writeFile(t, test.file))
			}
			_, err := config.Load(test.args, environment(test.env...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	_, err := config.Load([]string{"--max-payload", "0"}, environment("PAWL_SYNC", "x", "PAWL_CONFIG", writeFile(t, "adr = 1")))
	for _, want := range []string{"max-payload", "PAWL_SYNC", "unknown key adr, did you mean addr?"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestPasswordAndUsersOpenTheAddress(t *testing.T) {
	for name, load := range map[string]struct {
		env  []string
		file string
	}{
		"password": {env: []string{"PAWL_PASSWORD", "secret"}},
		"users":    {file: "[users]\nworker = \"on +@all\"\n"},
		"insecure": {env: []string{"PAWL_INSECURE", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if load.file != "" {
				load.env = append(load.env, "PAWL_CONFIG", writeFile(t, load.file))
			}
			if _, err := config.Load([]string{"--addr", "0.0.0.0:1"}, environment(load.env...)); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

func TestSecretsInAFileOthersCanWrite(t *testing.T) {
	path := writeFile(t, "[users]\nworker = \"on\"\n")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load([]string{"--config", path}, environment()); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v, want a refusal that says chmod 600", err)
	}
}

func TestPasswordIsNoOption(t *testing.T) {
	set, err := config.Load(nil, environment("PAWL_PASSWORD", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if set.Config.Password != "secret" {
		t.Errorf("got password %q", set.Config.Password)
	}
	for _, o := range set.Options {
		if strings.Contains(o.Value, "secret") {
			t.Errorf("option %s shows the password", o.Name)
		}
	}
}

func TestAgainAndChanges(t *testing.T) {
	file := writeFile(t, "log_level = \"info\"\nmax_payload = \"1KiB\"\n")
	set := config.New("serve")
	if err := set.Flags().Parse([]string{"--config", file, "--max-clients", "5"}); err != nil {
		t.Fatal(err)
	}
	if err := set.Load(environment()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("log_level = \"debug\"\nmax_payload = \"2KiB\"\nmax_clients = 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh, err := set.Again(environment())
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Config.MaxClients != 5 || fresh.Config.LogLevel != slog.LevelDebug || fresh.Config.MaxPayload != 2048 {
		t.Errorf("got %d %v %v, want 5 (the flag) debug 2KiB", fresh.Config.MaxClients, fresh.Config.LogLevel, fresh.Config.MaxPayload)
	}
	// What a daemon takes of it is what can change while it runs; CONFIG SET is
	// forgotten by the next reload.
	tuned, err := set.With("max-clients", "77", "CONFIG SET")
	if err != nil {
		t.Fatal(err)
	}
	if o := tuned.Option("max-clients"); o.Value != "77" || o.Origin != "CONFIG SET" || tuned.Config.MaxClients != 77 || set.Config.MaxClients != 5 {
		t.Errorf("tuned: got %+v, %d, and %d before", o, tuned.Config.MaxClients, set.Config.MaxClients)
	}
	if _, err := set.With("max-clients", "0", ""); err == nil {
		t.Error("no connections at all were taken")
	}
	again, err := tuned.Again(environment())
	if err != nil {
		t.Fatal(err)
	}
	taken, err := tuned.Taking(again)
	if err != nil {
		t.Fatal(err)
	}
	if c := taken.Config; c.MaxClients != 5 || c.LogLevel != slog.LevelDebug || c.MaxPayload != 1024 {
		t.Errorf("taken: got %d %v %v, want 5 debug, and 1KiB as before", c.MaxClients, c.LogLevel, c.MaxPayload)
	}
	want := []config.Change{
		{Name: "max-payload", Old: "1KiB", New: "2KiB"},
		{Name: "log-level", Old: "info", New: "debug", Reload: true},
	}
	if got := fresh.Changes(set); !slices.Equal(got, want) {
		t.Errorf("got changes %+v, want %+v", got, want)
	}
}

// TestTakingKeepsTheDoorShut: the file has gone back to loopback and dropped its
// users, but the daemon still listens where others can reach it.
func TestTakingKeepsTheDoorShut(t *testing.T) {
	file := writeFile(t, "addr = \"0.0.0.0:1\"\n[users]\nworker = \"on +@all\"\n")
	set, err := config.Load([]string{"--config", file}, environment())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("addr = \"127.0.0.1:1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh, err := set.Again(environment())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Taking(fresh); err == nil || !strings.Contains(err.Error(), "nobody has to log in") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]config.Bytes{
		"0": 0, "17": 17, "17b": 17, "1k": 1024, "1KiB": 1024, "1kb": 1000, "64MiB": 64 << 20, "64 MiB": 64 << 20, "2g": 2 << 30, "1TB": 1e12,
		"9223372036854775807": 1<<63 - 1,
	} {
		if got, err := config.ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "MiB", "1PB", "9223372036854775808", "9007199254740992KiB"} {
		if got, err := config.ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
	for want, b := range map[string]config.Bytes{"0": 0, "1500B": 1500, "3KiB": 3 << 10, "4MiB": 4 << 20, "5GiB": 5 << 30, "1TiB": 1 << 40} {
		if got := b.String(); got != want {
			t.Errorf("String of %d is %q, want %q", int64(b), got, want)
		}
		if back, err := config.ParseBytes(want); err != nil || back != b {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", want, back, err, b)
		}
	}
}

func TestSync(t *testing.T) {
	for text, want := range map[string]config.Sync{"always": 0, "never": config.SyncNever, "100ms": config.Sync(100 * time.Millisecond)} {
		var s config.Sync
		if err := s.Set(text); err != nil || s != want || s.String() != text {
			t.Errorf("Set(%q) gives %v (%q), %v", text, s, s.String(), err)
		}
	}
	for _, text := range []string{"", "1", "0s", "-1s", "2h", "ALWAYS"} {
		var s config.Sync
		if err := s.Set(text); err == nil {
			t.Errorf("Set(%q) gives %v, want an error", text, s)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"serve", "stats", "enqueue", "fetch", "ack"}
	for word, want := range map[string]string{"serv": "serve", "stast": "stats", "Enqeue": "enqueue", "fetsh": "fetch", "akc": "ack", "zzzzz": "", "": "", "x": ""} {
		if got := config.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestLoop: the poller is served by default, and asked for by name only where there is one.
func TestLoop(t *testing.T) {
	for _, arg := range []string{"", "auto", "portable", "poll", "epoll"} {
		var args []string
		if arg != "" {
			args = []string{"--loop", arg}
		}
		set, err := config.Load(args, environment())
		switch wrong := arg == "epoll" || arg == "poll" && runtime.GOOS != "linux"; {
		case wrong != (err != nil):
			t.Errorf("--loop %q: got %v", arg, err)
		case err == nil && set.Config.Loop != cmp.Or(arg, "auto"):
			t.Errorf("--loop %q: got %q", arg, set.Config.Loop)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:1": true, ":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "example.org:1": false, "x": false} {
		if got := config.Loopback(addr); got != want {
			t.Errorf("Loopback(%q) = %v, want %v", addr, got, want)
		}
	}
}
