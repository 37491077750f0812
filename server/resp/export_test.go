package resp

import "strings"

// PollAtOnce has pollers take connections as soon as they can, and again, so that
// streams of a few commands go through them.
func (s *Server) PollAtOnce() { s.enough = 0 }

// CommandRow is a row of the table, for the test of the documents.
type CommandRow struct {
	Name      string // with its container's
	Usage     string // name and syntax, as documented
	Summary   string
	Rights    string // class, or everybody
	Container bool
	Refused   bool // it is never carried out
	Harmless  bool // it takes any arguments and is never refused
}

// CommandRows are all rows but HELP.
func CommandRows() (rows []CommandRow) {
	for _, cmd := range commands {
		if cmd.name == "HELP" {
			continue
		}
		usage := cmd.name
		if cmd.parent != nil {
			usage = cmd.parent.name + " " + usage
		}
		name := usage
		if cmd.syntax != "" {
			usage += " " + cmd.syntax
		}
		rights := "everybody"
		for _, c := range []struct {
			bit  int
			name string
		}{{1, "produce"}, {2, "work"}, {4, "operate"}, {8, "admin"}} {
			if int(cmd.class)&c.bit != 0 {
				rights = c.name
			}
		}
		rows = append(rows, CommandRow{
			Name: name, Usage: usage, Summary: cmd.summary, Rights: rights, Container: cmd.sub != nil && cmd.run == nil,
			Refused: strings.HasPrefix(cmd.summary, "Is refused"), Harmless: cmd.most == 0 && (cmd.arity == -1 || cmd.arity == -2 && cmd.parent != nil),
		})
	}
	return rows
}

// SyntaxErrors are the rows whose syntax cannot be read.
func SyntaxErrors() (bad []string) {
	for _, cmd := range commands {
		if _, err := parseSyntax(cmd.syntax); err != nil {
			bad = append(bad, cmd.fullName()+": "+err.Error())
		}
	}
	return bad
}

// EngineRefusals are the error lines for what the engine refuses.
func EngineRefusals() (lines []string) {
	for _, r := range replies {
		lines = append(lines, r.word+" "+r.err.Error())
	}
	return lines
}

// ReplyError is the error line for an engine's error.
func ReplyError(err error) (line string, known bool) { return replyError(err) }

// SplitCommand takes a frame apart.
func SplitCommand(packet []byte) ([][]byte, error) { return splitCommand(packet, nil) }

// HoldLane keeps everybody out of the lane until release is called.
func (s *Server) HoldLane() (release func()) {
	for range cap(s.lane) {
		s.lane.enter()
	}
	return func() {
		for range cap(s.lane) {
			s.lane.leave()
		}
	}
}
