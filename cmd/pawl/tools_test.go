package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pawl/client"
)

const toolsPage = "../../docs/tools.md"

// docs/tools.md tells the story of one store. The test lives it: the commands
// that stand in the blocks of the page are run, and what they print is compared,
// without the numbers and names that are new every time. -update writes the new
// ones into the page.
func TestToolsPage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	page := read(t, toolsPage)
	parts := strings.Split(page, "```\n") // text and blocks in turns
	told := 0
	s := &story{t: t, dir: t.TempDir()}
	s.tell()
	for i := 1; i < len(parts); i += 2 {
		if told == len(s.blocks) {
			t.Fatalf("the page has a block that is not in the story:\n%s", parts[i])
		}
		if got, want := anyTime(s.blocks[told]), anyTime(parts[i]); got != want {
			t.Errorf("block %d of %s: the commands print\n%s\nthe page says\n%s", told+1, toolsPage, got, want)
		}
		parts[i] = s.blocks[told]
		told++
	}
	if told != len(s.blocks) {
		t.Errorf("the page has %d blocks, the story %d", told, len(s.blocks))
	}
	if *update {
		if err := os.WriteFile(toolsPage, []byte(strings.Join(parts, "```\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// anyTime is a block without what is different every time it is made.
func anyTime(block string) string {
	for _, r := range []struct{ from, to string }{
		{`\b01[0-9A-HJKMNP-TV-Z]{24}\b`, "JOB"},
		{`\b[0-9a-f]{32}\b`, "STORE"},
		{`\blease=[0-9a-z]+`, "lease=LEASE"},
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?|\b\d{8}T\d{6}Z`, "TIME"},
		{`(?m)^\d+\.\d+ `, "GROUP "},
		{`\bgroup(s?) \d+( to \d+)?`, "group$1 N"},
		{`\b(offset|length|lsn|generation|at|slot|queue_id)(":|=| )\d+`, "$1${2}N"},
		{`\d+ (KiB|more bytes)`, "N $1"},
		{`log/\d+/`, "log/N/"},
		{`generations of the log: \d+`, "generations of the log: N"},
	} {
		block = regexp.MustCompile(r.from).ReplaceAllString(block, r.to)
	}
	return block
}

// story is a store, and the blocks of the page about it.
type story struct {
	t      *testing.T
	dir    string
	blocks []string
}

func (s *story) tell() {
	t := s.t
	linkPawl(t, filepath.Join(s.dir, "pawl"))
	c := client.New(client.Options{Addr: filepath.Join(s.dir, "s")})
	defer c.Close()
	ask := func(words ...string) client.Value { t.Helper(); return ask(t, c, words...) }
	daemon := func(dir string) *process {
		t.Helper()
		p := startProcess(t, filepath.Join(s.dir, "pawl"), s.dir, "serve", "--dir", dir, "--existing", "--addr=", "--unix", "s", "--http-addr=", "--admin-addr=", "--backup-dir", ".")
		p.output.wait(t, "msg=serving")
		return p
	}
	stop := func(p *process) {
		t.Helper()
		p.cmd.Process.Signal(os.Interrupt)
		<-p.ended
		if code := p.cmd.ProcessState.ExitCode(); code != exitOK {
			t.Fatalf("the daemon exits with %d:\n%s", code, &p.output)
		}
	}

	made := s.block("pawl init data")
	p := daemon("data")
	var first string
	for i := range 12 {
		id := ask("ENQUEUE", "mail", fmt.Sprint("mail ", i), "BACKOFF", "0").Field("task_id").Text
		if i == 0 {
			first = id
		}
		if i == 6 {
			ask("ENQUEUE", "sms", "short")
		}
	}
	ask("FETCH", "mail", "100")
	p.kill() // with the lease open

	p = daemon("data")
	for ask("MOXY.STATS", "mail").Field("ready").Number() < 12 {
		time.Sleep(5 * time.Millisecond)
	}
	// A time is given in seconds: let one begin between the two.
	moment := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(moment.Add(20 * time.Millisecond)))
	ask("QUEUE", "PURGE", "mail")
	ask("ENQUEUE", "sms", "after the mistake")
	backup := s.block("pawl backup monday")
	stop(p)

	s.copy("data", "rotten")
	sound := s.block("pawl check data")
	s.spoil("rotten")
	s.blocks = []string{
		made,
		sound,
		s.block("pawl check rotten"),
		s.block("pawl dump data --job " + first),
		s.block("pawl dump data --queue sms --json"),
		backup,
		s.block("pawl backup --dir data copy") + s.block("pawl backup --dir data --base copy copy2"),
		s.block("pawl restore data --at "+moment.UTC().Format(time.RFC3339)+" --to restored") + s.block("pawl check restored"),
		shortened(s.block("pawl repair --dry-run rotten")),
		summed(s.block("pawl repair rotten --lost lost.jsonl")) + s.block("cat lost.jsonl"),
	}
	p = daemon("rotten") // repaired
	s.blocks[9] += s.block("pawl load lost.jsonl")
	stop(p)
}

// block runs a command and is what a terminal would show.
func (s *story) block(line string) string {
	s.t.Helper()
	words := strings.Fields(line)
	if words[0] == "pawl" {
		words[0] = filepath.Join(s.dir, "pawl")
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PAWL_ADDR=./s", "TZ=UTC")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != exitDamaged {
		s.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return "$ " + line + "\n" + string(out)
}

func (s *story) copy(from, to string) {
	s.t.Helper()
	if err := os.CopyFS(filepath.Join(s.dir, to), os.DirFS(filepath.Join(s.dir, from))); err != nil {
		s.t.Fatal(err)
	}
}

// spoil changes a byte of the payload of the sixth mail.
func (s *story) spoil(dir string) {
	s.t.Helper()
	_, lines, _ := strings.Cut(s.block("pawl dump "+dir+" --queue mail --json"), "\n")
	n := 0
	for line := range strings.Lines(lines) {
		var record struct {
			Kind               string
			Generation, Offset int64
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		if record.Kind != "enqueue" {
			continue
		}
		if n++; n < 6 {
			continue
		}
		name := filepath.Join(s.dir, dir, "log", fmt.Sprintf("%010d", record.Generation), "00000000000000000001")
		data, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		if at := bytes.Index(data[record.Offset:], []byte("mail 5")); at < 0 {
			s.t.Fatalf("no job at offset %d of %s", record.Offset, name)
		} else {
			data[int(record.Offset)+at] ^= 1
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatalf("no sixth job:\n%s", lines)
}

// summed is the block of a repair from the line on that sums it up.
func summed(block string) string {
	command, _, _ := strings.Cut(block, "\n")
	_, kept, _ := strings.Cut(block, "\nkept: ")
	return command + "\n…\nkept: " + kept
}

// shortened is a block with only the first of many lines that are alike.
func shortened(block string) string {
	var short strings.Builder
	alike := 0
	for line := range strings.Lines(block) {
		if strings.HasPrefix(line, "not brought back: ") {
			if alike++; alike == 2 {
				short.WriteString("…\n")
			}
			if alike >= 2 {
				continue
			}
		}
		short.WriteString(line)
	}
	return short.String()
}
