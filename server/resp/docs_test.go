package resp_test

import (
	"os"
	"strings"
	"testing"

	"pawl/server/resp"
)

func TestSyntaxOfEveryCommandIsRead(t *testing.T) {
	for _, bad := range resp.SyntaxErrors() {
		t.Error(bad)
	}
}

// TestDocuments holds docs/commands.md to the table: a section for every
// command, none for others, with its syntax, its summary and who may use it.
func TestDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string) // body by heading
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections[strings.Trim(heading, "`")] = body
	}
	for _, row := range resp.CommandRows() {
		if row.Container {
			continue
		}
		body, ok := sections[row.Usage]
		delete(sections, row.Usage)
		switch {
		case !ok:
			t.Errorf("no section ### `%s`", row.Usage)
		case !strings.Contains(body, row.Summary):
			t.Errorf("%s: does not say %q", row.Usage, row.Summary)
		case !strings.Contains(body, "Rights: "+row.Rights+"."):
			t.Errorf("%s: does not say that its rights are %s", row.Usage, row.Rights)
		case !strings.Contains(body, "Reply: "):
			t.Errorf("%s: does not say its reply", row.Usage)
		}
	}
	for heading := range sections {
		t.Errorf("section %q is of no command", heading)
	}
}
