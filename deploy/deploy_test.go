//go:build linux

// Package deploy_test holds what is shipped beside the binary to the binary:
// every query of the dashboard file and of the alert rules must find data in a
// Prometheus that scrapes a daemon under load.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/internal/child"
	"pawl/internal/torture/daemon"
)

// patience bounds whatever is waited for; it is no measure.
const patience = 2 * time.Minute

// program is the path of a tool that CI installs; without CI the test skips.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("PAWL_E2E") == "1" {
		t.Fatalf("%s is missing (Debian: prometheus)", name)
	}
	t.Skipf("%s is missing (Debian: prometheus)", name)
	return ""
}

// queries are all expressions of the dashboard file, by panel.
func queries(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range board.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("%s %c", p.Title, 'A'+i)] = target.Expr
		}
	}
	if len(all) < 20 {
		t.Fatalf("got %d queries, want the whole dashboard", len(all))
	}
	return all
}

func TestRules(t *testing.T) {
	out, err := exec.Command(program(t, "promtool"), "check", "rules", "alerts.yml").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("FAILED")) {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestNames needs no other program: each metric that is asked for is one that
// docs/metrics.md lists, and a test beside the metrics holds that list to them.
func TestNames(t *testing.T) {
	listed, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(rules)
	for _, q := range queries(t) {
		text += q + "\n"
	}
	names := regexp.MustCompile(`\bpawl_[a-z_]+`).FindAllString(text, -1)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		name = strings.TrimSuffix(name, "_bucket")
		if !regexp.MustCompile("`" + name + "[`{]").Match(listed) {
			t.Errorf("%s is asked for and not in docs/metrics.md", name)
		}
	}
}

func TestQueriesFindData(t *testing.T) {
	prometheus := program(t, "prometheus")
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("runs Prometheus beside the real daemon: set PAWL_E2E=1")
	}
	dir := t.TempDir()
	binary := built(t)
	resp, admin, watch := port(t, 11), port(t, 12), port(t, 13)
	background(t, binary, "serve", "--dir", filepath.Join(dir, "data"), "--addr", resp, "--http-addr", "", "--admin-addr", admin)
	config := filepath.Join(dir, "prometheus.yml")
	scrape := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: pawl\n    static_configs: [{targets: [%q]}]\n", admin)
	if err := os.WriteFile(config, []byte(scrape), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+watch)

	client := redis.NewClient(&redis.Options{Addr: resp})
	defer client.Close()
	// Every kind of thing that the panels show has happened, again and again,
	// so that rates have something to rise from.
	deadline := time.Now().Add(patience)
	missing := map[string]string{}
	for {
		work(t, client, deadline)
		clear(missing)
		for panel, q := range queries(t) {
			if found, why := ask(watch, q); !found {
				missing[panel] = q + ": " + why
			}
		}
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	for panel, why := range missing {
		t.Errorf("%s: %s", panel, why)
	}
}

// work is a little of everything.
func work(t *testing.T, client *redis.Client, deadline time.Time) {
	t.Helper()
	ctx := t.Context()
	for client.Do(ctx, "MOXY.STATS", "probe").Err() != nil {
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not answer")
		}
		time.Sleep(20 * time.Millisecond)
	}
	for range 20 {
		client.Do(ctx, "ENQUEUE", "mail", "hello", "TRIES", "1")
	}
	for i := range 10 {
		got, err := client.Do(ctx, "FETCH", "mail", 60000).StringSlice()
		if err != nil || len(got) != 6 {
			t.Fatalf("FETCH: got %q, %v", got, err)
		}
		command := []string{"ACK", "NACK"}[i%2]
		if err := client.Do(ctx, command, got[1]).Err(); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	client.Do(ctx, "SNAPSHOT")
}

// ask runs an instant query with Grafana's variables filled in.
func ask(addr, query string) (found bool, why string) {
	query = strings.NewReplacer("$__rate_interval", "10s", "$job", ".*", "$instance", ".*").Replace(query)
	answer, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err.Error()
	}
	var reply struct {
		Status string
		Data   struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(raw, &reply); err != nil || reply.Status != "success" {
		return false, string(raw)
	}
	return len(reply.Data.Result) > 0, "no data"
}

func port(t *testing.T, seed uint64) string {
	t.Helper()
	addr, err := daemon.Port(seed * 104729)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// background runs a program until the test ends.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.End(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), said.String())
		}
	})
}
