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
	pinned := make(map[string]string)
	for _, m := range []struct{ client, file, module string }{
		{"go-redis", "../../go.mod", "github.com/redis/go-redis/v9"},
		{"redigo", "testdata/go/go.mod", "github.com/gomodule/redigo"},
		{"rueidis", "testdata/go/go.mod", "github.com/redis/rueidis"},
		{"radix", "testdata/go/go.mod", "github.com/mediocregopher/radix/v4"},
	} {
		mod, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		pinned[m.client] = regexp.MustCompile(m.module + ` v(\S+)`).FindStringSubmatch(string(mod))[1]
	}
	other := map[string]string{"@valkey/valkey-glide": "Valkey GLIDE", "bun": "Bun"}
	for alias, target := range manifest.Dependencies {
		if client := other[alias]; client != "" {
			pinned[client] = target
			continue
		}
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

// example is a code block of a section of docs/clients.md, the first is 0.
func example(t *testing.T, section string, n int) string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("no section %s", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	blocks := strings.Split(rest, "```")
	if len(blocks) <= 2*n+1 {
		t.Fatalf("too little code in section %s", section)
	}
	_, code, _ := strings.Cut(blocks[2*n+1], "\n")
	return strings.ReplaceAll(code, "6380", number(port))
}

// The programs around the examples, which stand for %.
const (
	goProgram = "package main\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\t\"CLIENT\"\n)\n\nvar (\n\tctx = context.Background()\n\t_ = time.Second\n)\n\n" +
		"func main() {\n\tif err := work(); err != nil {\n\t\tpanic(err)\n\t}\n}\n\nfunc work() error {\n%\n}\n"
	jsProgram = "IMPORT;\n(async () => {\n%\nCLOSE;\n})().catch((e) => { console.error(e); process.exit(1); });\n"
)

// aroundGo and aroundJS are these programs for one client.
func aroundGo(path string) string { return strings.Replace(goProgram, "CLIENT", path, 1) }

func aroundJS(load, end string) string {
	return strings.NewReplacer("IMPORT", load, "CLOSE", end).Replace(jsProgram)
}

// The examples of docs/clients.md take a job from ENQUEUE to ACK, sending the
// ENQUEUE twice, and leave nothing behind.
func TestDocumentedExamples(t *testing.T) {
	php := []string{"php", "-d", "display_errors=stderr", "-d", "error_reporting=-1"}
	for _, c := range []struct {
		name, section string
		nth           int // of the code of the section
		wrap, file    string
		run           []string
		needs         func(t *testing.T, dir string)
	}{
		{"go-redis", "go-redis", 0, aroundGo("github.com/redis/go-redis/v9"), "main.go", []string{"go", "run"}, nil},
		{"redigo", "redigo", 0, aroundGo("github.com/gomodule/redigo/redis"), "main.go", []string{"go", "run"}, otherModule},
		{"rueidis", "rueidis", 0, aroundGo("github.com/redis/rueidis"), "main.go", []string{"go", "run"}, otherModule},
		{"redis-py", "redis-py", 0, "import redis\n%\n", "main.py", []string{"/usr/bin/python3", "-W", "error"}, nil},
		{"Ioredis", "ioredis", 0, aroundJS("const Redis = require('ioredis5')", "redis.disconnect()"), "main.js", []string{"node"}, linkModules},
		{"NodeRedis", "node-redis", 0, aroundJS("const { createClient } = require('redis6')", "redis.destroy()"), "main.js", []string{"node"}, linkModules},
		{"Glide", "Valkey GLIDE", 0, aroundJS("const { GlideClient } = require('@valkey/valkey-glide')", "process.exit(0)"), "main.js", []string{"node"}, linkModules},
		{"Perl", "Perl", 0, "use strict;\nuse warnings;\nuse Redis;\n%\n", "main.pl", []string{"perl"}, nil},
		{"PhpRedis", "PHP", 0, "<?php\n%\n", "main.php", php, nil},
		{"Predis", "PHP", 1, "<?php\nrequire 'Predis/autoload.php';\n%\n", "main.php", php, nil},
		{"Ruby", "Ruby", 0, "require 'redis'\n%\n", "main.rb", []string{"ruby", "-w"}, nil},
		{"Lua", "Lua", 0, "local redis = require 'redis'\n%\n", "main.lua", []string{"lua5.1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startWith(t, port)
			dir := t.TempDir()
			file := filepath.Join(dir, c.file)
			if err := os.WriteFile(file, []byte(strings.Replace(c.wrap, "%", example(t, c.section, c.nth), 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(c.run[0], append(slices.Clone(c.run[1:]), file)...)
			if c.needs != nil {
				c.needs(t, dir)
				cmd.Dir = dir
			}
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

// otherModule makes a program part of the module of testdata/go.
func otherModule(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("testdata/go", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
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
