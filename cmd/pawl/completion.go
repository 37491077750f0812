package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

func completionCommand() subcommand {
	return subcommand{
		name: "completion", words: []string{"bash", "zsh", "fish"}, args: "bash|zsh|fish", summary: "print a completion script for a shell", group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			return newFlagSet("completion"), func(_ context.Context, args []string) error {
				if err := wantArgs(args, 1, 1); err != nil {
					return err
				}
				write, ok := map[string]func(io.Writer, []completion){"bash": completeBash, "zsh": completeZsh, "fish": completeFish}[args[0]]
				if !ok {
					return usagef("unknown shell %q, want bash, zsh or fish", args[0])
				}
				write(e.stdout, completions(e))
				return nil
			}
		},
	}
}

// completion is one subcommand with its flags.
type completion struct {
	name, summary string
	words         []string // for the first argument
	flags         []*pflag.Flag
}

func completions(e *env) (all []completion) {
	for _, c := range subcommands() {
		fs, _ := c.flags(e)
		one := completion{name: c.name, summary: c.summary, words: c.words}
		fs.VisitAll(func(f *pflag.Flag) { one.flags = append(one.flags, f) })
		all = append(all, one)
	}
	help := completion{name: "help", summary: "say what pawl can do, or one subcommand"}
	for _, c := range all {
		help.words = append(help.words, c.name)
	}
	return append(all, help)
}

func completeBash(w io.Writer, all []completion) {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	fmt.Fprintf(w, `# bash completion for pawl: source <(pawl completion bash)
_pawl() {
	local word=${COMP_WORDS[COMP_CWORD]} flags= words=
	if [ "$COMP_CWORD" -eq 1 ]; then
		COMPREPLY=($(compgen -W "%s --help --version" -- "$word"))
		return
	fi
	case ${COMP_WORDS[1]} in
`, strings.Join(names, " "))
	for _, c := range all {
		flags := make([]string, len(c.flags))
		for i, f := range c.flags {
			flags[i] = "--" + f.Name
		}
		fmt.Fprintf(w, "\t%s) flags=%q words=%q ;;\n", c.name, strings.Join(flags, " "), strings.Join(c.words, " "))
	}
	fmt.Fprint(w, `	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$flags --help" -- "$word")) ;;
	*)
		if [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ]; then
			COMPREPLY=($(compgen -W "$words" -- "$word"))
		else
			COMPREPLY=($(compgen -f -- "$word"))
		fi ;;
	esac
}
complete -F _pawl pawl
`)
}

func completeZsh(w io.Writer, all []completion) {
	quote := strings.NewReplacer("'", "'\\''", ":", "\\:", "[", "(", "]", ")").Replace
	fmt.Fprint(w, "#compdef pawl\n# zsh completion for pawl: pawl completion zsh > ~/.zsh/_pawl\n_pawl() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a names=(\n")
	for _, c := range all {
		fmt.Fprintf(w, "\t\t\t'%s:%s'\n", c.name, quote(c.summary))
	}
	fmt.Fprint(w, "\t\t)\n\t\t_describe subcommand names\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, c := range all {
		fmt.Fprintf(w, "\t%s) _arguments", c.name)
		for _, f := range c.flags {
			value := ""
			if f.Value.Type() != "bool" {
				value = ":" + f.Value.Type() + ":_files"
			}
			fmt.Fprintf(w, " '--%s[%s]%s'", f.Name, quote(f.Usage), strings.ReplaceAll(value, "|", " or "))
		}
		if len(c.words) > 0 {
			fmt.Fprintf(w, " '1:word:(%s)'", strings.Join(c.words, " "))
		}
		fmt.Fprint(w, " '--help[say this]' '*:argument:_files' ;;\n")
	}
	fmt.Fprint(w, "\tesac\n}\n_pawl \"$@\"\n")
}

func completeFish(w io.Writer, all []completion) {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	fmt.Fprintln(w, "# fish completion for pawl: pawl completion fish > ~/.config/fish/completions/pawl.fish")
	for _, c := range all {
		fmt.Fprintf(w, "complete -c pawl -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quote(c.summary))
		if len(c.words) > 0 {
			fmt.Fprintf(w, "complete -c pawl -n '__fish_seen_subcommand_from %s' -f -a %s\n", c.name, quote(strings.Join(c.words, " ")))
		}
		for _, f := range c.flags {
			value := ""
			if f.Value.Type() != "bool" {
				value = " -r"
			}
			fmt.Fprintf(w, "complete -c pawl -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", c.name, f.Name, value, quote(f.Usage))
		}
	}
}
