package resp

// CommandRow is a row of the table, for the test of the documents.
type CommandRow struct {
	Usage     string // name and syntax, as documented
	Summary   string
	Rights    string // class, or everybody
	Container bool
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
		rows = append(rows, CommandRow{usage, cmd.summary, rights, cmd.sub != nil && cmd.run == nil})
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
