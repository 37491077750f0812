package lmstfy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pawl/server/lmstfy"
)

// sample has what lmstfy's own example has, in other case here and there, and
// names that it does not know.
const sample = `
Host = "127.0.0.1"
port = 7777
AdminHost = "127.0.0.1"
ADMINPORT = 7778
LogLevel = "info"
LogDir = ""
LogFormat = "json"
EnableAccessLog = true
TTLSecond = 3600
DelaySecond = 5
TriesNum = 3
TTRSecond = 60
TimeoutSecond = 1
SomethingNew = [1, 2]

[Accounts]
admin = "secret"

[AdminRedis]
Addr = "localhost:6379"

[Pool]
[Pool.default]
Addr = "localhost:6379"
PoolSize = 100
[Pool.old]
Addr = "localhost:6380"
MigrateTo = "default"
[Pool.other]
Addr = "localhost:6381"
Version = "v2"

[Tokens.ns]
"old:01F4CKPFY8XYVH6WVEQB3747CW" = "the importer"
`

func load(t *testing.T, text string) (*lmstfy.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lmstfy.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return lmstfy.LoadConfig(path)
}

func TestLoadConfig(t *testing.T) {
	c, err := load(t, sample)
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "127.0.0.1" || c.Port != 7777 || c.AdminPort != 7778 || c.AdminHost != "127.0.0.1" {
		t.Errorf("got addresses %s:%d and %s:%d", c.Host, c.Port, c.AdminHost, c.AdminPort)
	}
	var o lmstfy.Options
	c.Apply(&o)
	if want := []string{"default", "old"}; !slices.Equal(o.Pools, want) {
		t.Errorf("got pools %v, want %v", o.Pools, want)
	}
	if o.MigrateTo["old"] != "default" {
		t.Errorf("got migrations %v, want old to default", o.MigrateTo)
	}
	if o.Accounts["admin"] != "secret" {
		t.Errorf("got accounts %v", o.Accounts)
	}
	if !o.AccessLogOn || !o.AccessLogJSON {
		t.Errorf("got access log on %t, JSON %t, want both", o.AccessLogOn, o.AccessLogJSON)
	}
	if o.Defaults.TTLSeconds == nil || *o.Defaults.TTLSeconds != 3600 || *o.Defaults.Tries != 3 || *o.Defaults.TTRSeconds != 60 || *o.Defaults.DelaySeconds != 5 || *o.Defaults.TimeoutSeconds != 1 {
		t.Errorf("got defaults %+v", o.Defaults)
	}
	want := lmstfy.FixedToken{Pool: "old", Namespace: "ns", Token: "01F4CKPFY8XYVH6WVEQB3747CW", Description: "the importer"}
	if len(o.FixedTokens) != 1 || o.FixedTokens[0] != want {
		t.Errorf("got tokens %+v, want %+v", o.FixedTokens, want)
	}
	if _, err := lmstfy.New(o); err != nil {
		t.Errorf("the options it gives are refused: %v", err)
	}
}

func TestLoadConfigRefuses(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"no host", `Host = "127.0.0.1"`, "", "Host"},
		{"no port", "port = 7777", "", "Port"},
		{"port out of range", "port = 7777", "port = 70000", "Port"},
		{"no admin port", "ADMINPORT = 7778", "", "AdminPort"},
		{"no default pool", "[Pool.default]", "[Pool.first]", "Pool.default"},
		{"no tries", "TriesNum = 3", "TriesNum = 0", "TriesNum"},
		{"not TOML", "[Pool]", "[Pool", "lmstfy.toml"},
	} {
		_, err := load(t, strings.Replace(sample, tt.old, tt.new, 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error that names %s", tt.name, err, tt.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	zero := uint16(0)
	for _, tt := range []struct {
		name string
		o    lmstfy.Options
	}{
		{"pool with a colon", lmstfy.Options{Pools: []string{"a:b"}}},
		{"pool with a slash", lmstfy.Options{Pools: []string{"a/b"}}},
		{"migration to an unknown pool", lmstfy.Options{MigrateTo: map[string]string{"default": "x"}}},
		{"migration to itself", lmstfy.Options{MigrateTo: map[string]string{"default": "default"}}},
		{"no tries", lmstfy.Options{Defaults: lmstfy.Defaults{Tries: &zero}}},
		{"token of an unknown pool", lmstfy.Options{FixedTokens: []lmstfy.FixedToken{{Pool: "x", Namespace: "ns", Token: "t"}}}},
		{"token without a namespace", lmstfy.Options{FixedTokens: []lmstfy.FixedToken{{Token: "t"}}}},
	} {
		if _, err := lmstfy.New(tt.o); err == nil {
			t.Errorf("%s: was taken", tt.name)
		}
	}
}
