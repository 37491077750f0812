//go:build linux

package clients_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	docsFile = "../../docs/clients.md"
	// tableHead begins the table of what was tried.
	tableHead = "| client | version | tried | result |"
)

// row is what docs/clients.md says of one client.
type row struct {
	version string
	tried   []string
	result  string
}

// rows reads the table, by client.
func rows(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), tableHead+"\n")
	if !ok {
		t.Fatalf("%s has no table %q", docsFile, tableHead)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	all := make(map[string]row)
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 {
			t.Fatalf("not a row: %q", line)
		}
		all[cells[0]] = row{cells[1], strings.Split(cells[2], ", "), cells[3]}
	}
	return all
}

// checkRow holds the table to what a client has passed.
func checkRow(t *testing.T, client string, passed []string) {
	t.Helper()
	want, ok := rows(t)[client]
	if !ok {
		t.Errorf("docs/clients.md has no row of %s", client)
		return
	}
	got := slices.Clone(passed)
	slices.Sort(got)
	slices.Sort(want.tried)
	if !slices.Equal(got, want.tried) {
		t.Errorf("%s passed %q, docs/clients.md says %q", client, got, want.tried)
	}
}

// Versions that this repository pins are those of the table. Debian moves the
// others; their tests print them.
func TestTableNamesPinnedVersions(t *testing.T) {
	all := rows(t)
	var manifest struct{ Dependencies map[string]string }
	raw, err := os.ReadFile("testdata/node/package.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{"go-redis": regexp.MustCompile(`github.com/redis/go-redis/v9 v(\S+)`).FindStringSubmatch(string(mod))[1]}
	for alias, target := range manifest.Dependencies {
		client := strings.Replace(alias, "redis", "node-redis ", 1)
		if strings.HasPrefix(alias, "io") {
			client = strings.Replace(alias, "redis", "redis ", 1)
		}
		pinned[client] = target[strings.LastIndexByte(target, '@')+1:]
	}
	for client, version := range pinned {
		if got, _, _ := strings.Cut(all[client].version, " "); got != version {
			t.Errorf("%s: the table says %q, the tests run %q", client, got, version)
		}
	}
}

// example is the code block of a section of docs/clients.md.
func example(t *testing.T, section string) string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("no section %s", section)
	}
	_, rest, _ = strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "\n")
	code, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatalf("no code in section %s", section)
	}
	return strings.ReplaceAll(code, "6380", number(port))
}

// The examples of docs/clients.md take a job from ENQUEUE to ACK, sending the
// ENQUEUE twice, and leave nothing behind.
func TestDocumentedExamples(t *testing.T) {
	for _, c := range []struct {
		section, file string
		wrap          string // the program around the example, which stands for %
		run           []string
		needs         func(t *testing.T, dir string)
	}{
		{
			"go-redis", "main.go",
			"package main\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\t\"github.com/redis/go-redis/v9\"\n)\n\nfunc main() {\n\tctx := context.Background()\n\tif err := work(ctx); err != nil {\n\t\tpanic(err)\n\t}\n}\n\nfunc work(ctx context.Context) error {\n%\n}\n",
			[]string{"go", "run"}, nil,
		},
		{"redis-py", "main.py", "import redis\n%\n", []string{"/usr/bin/python3", "-W", "error"}, nil},
		{"ioredis", "main.js", "const Redis = require('ioredis5');\n(async () => {\n%\nredis.disconnect();\n})().catch((e) => { console.error(e); process.exit(1); });\n", []string{"node"}, linkModules},
		{"node-redis", "main.js", "const { createClient } = require('redis6');\n(async () => {\n%\nredis.destroy();\n})().catch((e) => { console.error(e); process.exit(1); });\n", []string{"node"}, linkModules},
	} {
		name := map[string]string{"ioredis": "Ioredis", "node-redis": "NodeRedis"}[c.section]
		if name == "" {
			name = c.section
		}
		t.Run(name, func(t *testing.T) {
			p := startWith(t, port)
			dir := t.TempDir()
			if c.needs != nil {
				c.needs(t, dir)
			}
			file := filepath.Join(dir, c.file)
			if err := os.WriteFile(file, []byte(strings.Replace(c.wrap, "%", example(t, c.section), 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(c.run[0], append(c.run[1:], file)...)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s\nthe daemon's log:\n%s", err, out, p.said)
			}
			cli := redisCLI{t, need(t, "redis-cli", "redis-tools"), []string{"-p", number(port)}, ""}
			got := cli.ask("", "QUEUE", "INFO", "mail")
			if !strings.Contains(got, "\nenqueued\n1\n") || !strings.Contains(got, "\nacked\n1\n") {
				t.Errorf("the example enqueues and acknowledges one job, got:\n%s", got)
			}
		})
	}
}

func linkModules(t *testing.T, dir string) {
	t.Helper()
	from := os.Getenv("PAWL_NODE_MODULES")
	if from == "" {
		t.Fatal("set PAWL_NODE_MODULES")
	}
	if err := os.Symlink(from, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}
