package resp_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/acl"
	"pawl/engine"
	"pawl/server/resp"
)

var update = flag.Bool("update", false, "rewrite the replies in testdata")

// TestDialogues plays testdata/*.txt against a daemon on a new directory, one
// for each file. Replies are indented; the other lines are
//
//	# a comment
//	! password X, ! user NAME RULES…, ! loading, ! backups, ! payload BYTES,
//	! queues N, ! memory BYTES: how the daemon is started, at the top
//	> COMMAND…     connection a sends it; the reply follows
//	b> COMMAND…    another connection does
//	> COMMAND… &   the reply is not waited for; "a<" takes it later
//	>> "raw\r\n"   bytes as they are, and the reply
//	a eof          a finishes sending
//	a closed       a must be closed; what it was told follows
//	wait blocked 1 until so many clients wait for jobs
//	wait ready 2 jobs  until the queue has so many ready jobs
//	pass 5         so many milliseconds go by
//	engine         the log has been replayed
//
// $id, $lease and $cursor stand for what was seen last, $id2 and so on for the
// ones before. Replies are compared with IDs and times replaced.
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playDialogue(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range max(len(want), len(have)) {
				if i >= len(want) || i >= len(have) || want[i] != have[i] {
					t.Fatalf("%s:%d: got %s, want %s", file, i+1, at(have, i), at(want, i))
				}
			}
		})
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// play is one dialogue that is played.
type play struct {
	t     *testing.T
	d     *daemon
	peers map[string]*peer
	ids   []string
	lease []string
	out   strings.Builder
}

func playDialogue(t *testing.T, text string) string {
	p := &play{t: t, peers: make(map[string]*peer)}
	opt, loading := resp.Options{}, false
	var engineOpt engine.Options
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for n, line := range lines {
		if strings.HasPrefix(line, "  ") {
			continue // an old reply
		}
		fmt.Fprintln(&p.out, line)
		if setup, ok := strings.CutPrefix(line, "! "); ok {
			words := strings.Fields(setup)
			switch words[0] {
			case "password":
				opt.Password = words[1]
			case "user":
				u, err := acl.Parse(words[1], words[2:]...)
				if err != nil {
					t.Fatal(err)
				}
				opt.Users = append(opt.Users, u)
			case "loading":
				loading = true
			case "backups":
				opt.BackupDir = t.TempDir()
			case "payload":
				opt.Limits.PayloadBytes, _ = strconv.Atoi(words[1])
			case "queues":
				engineOpt.MaxQueues, _ = strconv.Atoi(words[1])
			case "memory":
				engineOpt.MaxMemory, _ = strconv.ParseInt(words[1], 10, 64)
			}
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if p.d == nil {
			if loading {
				p.d = startLoading(t, opt)
			} else {
				p.d = startLoading(t, opt)
				p.d.engineOpt = engineOpt
				p.d.openEngine()
			}
		}
		if reply, ok := p.line(line); ok {
			fmt.Fprintln(&p.out, "  "+reply)
		}
		if t.Failed() {
			t.Fatalf("in line %d: %s", n+1, line)
		}
	}
	return p.out.String()
}

var lineForm = regexp.MustCompile(`^([a-z]?)(>>|>|<) ?(.*)$`)

// line does one line and gives the reply, if it has one.
func (p *play) line(line string) (reply string, ok bool) {
	words := strings.Fields(line)
	switch {
	case line == "engine":
		p.d.openEngine()
		return "", false
	case words[0] == "wait":
		want, _ := strconv.ParseInt(words[2], 10, 64)
		p.d.until(line, func() bool {
			if words[1] == "ready" {
				stats := p.peer("z").do("STATS", words[3])
				return strings.HasPrefix(stats, fmt.Sprintf(`["ready" %d `, want))
			}
			return p.d.s.Numbers().Blocked == want
		})
		return "", false
	case words[0] == "pass":
		ms, _ := strconv.Atoi(words[1])
		time.Sleep(time.Duration(ms) * time.Millisecond)
		return "", false
	case len(words) == 2 && words[1] == "eof":
		p.peer(words[0]).closeWrite()
		return "", false
	case len(words) == 2 && words[1] == "closed":
		return strconv.Quote(p.peer(words[0]).closed()), true
	}
	m := lineForm.FindStringSubmatch(line)
	if m == nil {
		p.t.Fatalf("cannot read line: %s", line)
	}
	c := p.peer(m[1])
	switch m[2] {
	case "<":
		return p.show(c.reply()), true
	case ">>":
		c.send(strings.Join(p.words(m[3]), ""))
		return p.show(c.reply()), true
	}
	text, later := strings.CutSuffix(m[3], " &")
	c.send(command(p.words(text)...))
	if later {
		return "", false
	}
	return p.show(c.reply()), true
}

func (p *play) peer(name string) *peer {
	if name == "" {
		name = "a"
	}
	if p.peers[name] == nil {
		p.peers[name] = p.d.dial()
	}
	return p.peers[name]
}

var wordForm = regexp.MustCompile(`"(?:[^"\\]|\\.)*"(?:\*\d+)?|\S+`)

// words splits a command; "x"*1000 is a long word.
func (p *play) words(text string) []string {
	words := wordForm.FindAllString(text, -1)
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, `"`):
			quoted, times := w, 1
			if at := strings.LastIndex(w, `"*`); at > 0 {
				quoted = w[:at+1]
				times, _ = strconv.Atoi(w[at+2:])
			}
			unquoted, err := strconv.Unquote(quoted)
			if err != nil {
				p.t.Fatalf("%s: %v", w, err)
			}
			words[i] = strings.Repeat(unquoted, times)
		case strings.HasPrefix(w, "$id"):
			words[i] = p.seen(p.ids, w[3:])
		case strings.HasPrefix(w, "$lease"):
			words[i] = p.seen(p.lease, w[6:])
		}
	}
	return words
}

func (p *play) seen(list []string, back string) string {
	n := 1
	if back != "" {
		n, _ = strconv.Atoi(back)
	}
	if n < 1 || n > len(list) {
		p.t.Fatalf("nothing seen %d back", n)
	}
	return list[len(list)-n]
}

var (
	jobForm    = regexp.MustCompile(`"[0-7][0-9A-HJKMNP-TV-Z]{25}"`)
	leaseForm  = regexp.MustCompile(`"[0-9a-hjkmnp-tv-z]{23}"`)
	timeForm   = regexp.MustCompile(`\b1[789]\d{11}\b`)
	spanForm   = regexp.MustCompile(`("(?:oldest_ready_ms|next_due_ms)":? )\d+`)
	clientForm = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	storeForm  = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
)

// show replaces what differs from run to run, and remembers IDs.
func (p *play) show(reply string) string {
	reply = jobForm.ReplaceAllStringFunc(reply, func(id string) string {
		id = strings.Trim(id, `"`)
		if len(p.ids) == 0 || p.ids[len(p.ids)-1] != id {
			p.ids = append(p.ids, id)
		}
		return "ID"
	})
	reply = leaseForm.ReplaceAllStringFunc(reply, func(id string) string {
		p.lease = append(p.lease, strings.Trim(id, `"`))
		return "LEASE"
	})
	reply = timeForm.ReplaceAllString(reply, "TIME")
	reply = spanForm.ReplaceAllString(reply, "${1}SPAN")
	reply = storeForm.ReplaceAllString(reply, "STORE")
	return clientForm.ReplaceAllString(reply, "ADDR")
}
