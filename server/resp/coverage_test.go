package resp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pawl/server/resp"
)

// dialogueLines are the commands of all dialogues with their replies.
func dialogueLines(t *testing.T) (commands [][2]string, replies string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		replies += string(text)
		lines := strings.Split(string(text), "\n")
		for i, line := range lines[:len(lines)-1] {
			if m := lineForm.FindStringSubmatch(line); m != nil && m[2] == ">" {
				commands = append(commands, [2]string{m[3], strings.TrimSpace(lines[i+1])})
			}
		}
	}
	return commands, replies
}

// Every command of the table is carried out in some dialogue, and refused in
// some.
func TestEveryCommandHasADialogue(t *testing.T) {
	lines, _ := dialogueLines(t)
	for _, row := range resp.CommandRows() {
		if row.Container {
			continue
		}
		done, refused := row.Refused || elsewhere[row.Name] != "", row.Harmless
		for _, line := range lines {
			command := strings.ToUpper(line[0]) + " "
			if !strings.HasPrefix(command, row.Name+" ") && !strings.HasPrefix(command, "MOXY."+row.Name+" ") {
				continue
			}
			if refusalForm.MatchString(strings.TrimPrefix(line[1], "-")) && line[1][0] == '-' {
				refused = true
			} else {
				done = true
			}
		}
		if !done || !refused {
			t.Errorf("%s: carried out in a dialogue %v, refused %v", row.Name, done, refused)
		}
	}
}

// elsewhere are the commands whose replies are never the same, and the refusals
// that no dialogue can bring about, with the test that does.
var elsewhere = map[string]string{
	"CLIENT INFO":   "TestRepliesThatVary",
	"TIME":          "TestRepliesThatVary",
	"MEMORY DOCTOR": "TestRepliesThatVary",
	"ACL GENPASS":   "TestRepliesThatVary",
	"MONITOR":       "TestMonitor",

	"MISCONF disk full: no next generation of the log could be prepared": "TestFullDisk",
	"MISCONF the log has failed":                                         "TestStorageFailureReachesEveryReply",
	"MISCONF the disk does not answer":                                   "TestHungDisk",
	"UNKNOWN the disk does not answer, the outcome is open":              "TestHungDisk",
	"UNKNOWN the log failed, the outcome is open":                        "TestStorageFailureReachesEveryReply",
	"UNKNOWN interrupted half way, the rest is not done":                 "TestHalfATurnIsUnknown",
	"ERR too many commands are waiting":                                  "TestHungDisk",
	"ERR shutting down":                                                  "TestCloseRefusesWaiters",
	"ERR job body is damaged on disk":                                    "TestDamagedBody",
	"ERR malformed RESP value: invalid command":                          "TestErrorsWithoutAWord",
	"ERR internal error":                                                 "TestErrorsWithoutAWord",
	"ERR the \x00 failed: \x00":                                          "TestStorageRefusals",
	"ERR Background save already in progress":                            "TestStorageRefusals",
	"ERR malformed RESP value: missing bulk terminator":                  "TestMoxyProbe",
	"ERR Protocol error: too many commands before login":                 "TestStrangerMaySendFewCommands",
}

// The tests named above exist.
func TestElsewhereIsThere(t *testing.T) {
	files, _ := filepath.Glob("*_test.go")
	more, _ := filepath.Glob("../../engine/*_test.go")
	source := ""
	for _, name := range append(files, more...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source += string(text)
	}
	for what, test := range elsewhere {
		if !strings.Contains(source, "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", what, test)
		}
	}
}

// Every refusal of the table of the engine's errors, and every error line that
// stands in this package, is met in some dialogue or in the test named above.
func TestEveryRefusalHasADialogue(t *testing.T) {
	_, replies := dialogueLines(t)
	for _, line := range append(resp.EngineRefusals(), errorLiterals(t)...) {
		form := regexp.MustCompile(`\\?%[a-z]|\x00`).ReplaceAllString(regexp.QuoteMeta(line), ".*")
		if !regexp.MustCompile(form).MatchString(replies) && elsewhere[line] == "" {
			t.Errorf("no dialogue is refused with %q", line)
		}
	}
}

var refusalForm = regexp.MustCompile(`^(ERR|NO[A-Z]+|WRONGPASS|LOADING|MISCONF|UNKNOWN|UNBLOCKED|OOM|QUEUEFULL|PAUSED|TOOLARGE|EXECABORT|BUSYJOB) .`)

// errorLiterals are the error lines that the package's source holds, those that
// are put together with \x00 for what varies.
func errorLiterals(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return s
			}
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		}
		return "\x00"
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			switch e.(type) {
			case *ast.BasicLit, *ast.BinaryExpr:
				if s := text(e); refusalForm.MatchString(s) {
					lines = append(lines, s)
				}
				return false
			}
			return true
		})
	}
	if len(lines) < 40 {
		t.Fatalf("found %d error lines in the source, there are more", len(lines))
	}
	return lines
}
