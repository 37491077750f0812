// Command mutate changes one thing of a file at a time, an operator, a condition,
// a returned error, or a call that is left out, and runs the tests of its package
// on the change. A change that no test notices has survived: either a test is
// missing, or it makes no difference.
//
//	go run ./internal/mutate -run 'TestDecide' ./wal decide.go
//	go run ./internal/mutate ./snapshot format.go encode.go decode.go
//	go run ./internal/mutate -part 2/5 ./state codec.go
//	go run ./internal/mutate -lines 40,77 -tests './wal ./recovery' ./wal commit.go
//
// Nothing in the tree is written: the go command is given the changed file as an
// overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	run := flag.String("run", "", "which tests to run, as of go test; empty is all")
	limit := flag.Duration("timeout", time.Minute, "how long the tests of one mutant may take; one that hangs is killed, in both senses")
	share := flag.String("part", "1/1", "which part of the mutants to try, such as 2/5: every fifth, from the second on")
	lines := flag.String("lines", "", "only mutants on these lines, such as 12,40,77: what survived before; empty is all")
	tests := flag.String("tests", "", "packages whose tests are asked, with spaces between; empty is PACKAGE")
	flag.Parse()
	var sum tally
	_, err := fmt.Sscanf(*share, "%d/%d", &sum.part, &sum.parts)
	if sum.lines = numbers(*lines); err != nil || sum.part < 1 || sum.part > sum.parts || flag.NArg() < 2 || len(sum.lines) == 0 && *lines != "" {
		fmt.Fprintln(os.Stderr, "usage: mutate [-run REGEXP] [-timeout D] [-part N/M] [-lines N,…] [-tests PACKAGES] PACKAGE FILE…")
		os.Exit(2)
	}
	asked := strings.Fields(*tests)
	if len(asked) == 0 {
		asked = flag.Args()[:1]
	}
	for _, file := range flag.Args()[1:] {
		if err := sum.file(filepath.Join(flag.Arg(0), file), asked, *run, *limit); err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(2)
		}
	}
	fmt.Printf("%d mutants, %d killed, %d survived\n", sum.killed+sum.survived, sum.killed, sum.survived)
}

// numbers are those of a list with commas; nil if it is none.
func numbers(list string) (all []int) {
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// tally counts mutants that build, of one part, and where lines is not empty on
// those lines.
type tally struct {
	part, parts      int
	lines            []int
	killed, survived int
}

// mutant is one change of the bytes from to end.
type mutant struct {
	from, end int
	with      string
}

func (s *tally) file(name string, asked []string, run string, limit time.Duration) error {
	path, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mutants, err := mutantsOf(source)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i, m := range mutants {
		if i%s.parts != s.part-1 {
			continue
		}
		line := 1 + bytes.Count(source[:m.from], []byte("\n"))
		if len(s.lines) > 0 && !slices.Contains(s.lines, line) {
			continue
		}
		changed := bytes.Join([][]byte{source[:m.from], []byte(m.with), source[m.end:]}, nil)
		verdict, err := try(dir, asked, path, changed, run, limit)
		if err != nil {
			return err
		}
		switch verdict {
		case killed:
			s.killed++
		case survived:
			s.survived++
			fmt.Printf("survived: %s:%d: %q -> %q\n", name, line, source[m.from:m.end], m.with)
		}
	}
	return nil
}

// opposites is what each operator becomes.
var opposites = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&",
	token.ADD: "-", token.SUB: "+",
	token.AND: "|", token.OR: "&", token.SHL: ">>", token.SHR: "<<",
}

// mutantsOf lists the changes of a file, in the order of its syntax tree.
func mutantsOf(source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	var all []mutant
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if with, ok := opposites[n.Op]; ok {
				from := offset(n.OpPos)
				all = append(all, mutant{from, from + len(n.Op.String()), with})
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				all = append(all, mutant{offset(n.OpPos), offset(n.X.Pos()), ""})
			}
		case *ast.IfStmt:
			switch n.Cond.(type) {
			case *ast.BinaryExpr, *ast.UnaryExpr: // changed above
			default:
				at := offset(n.Cond.Pos())
				all = append(all, mutant{at, at, "!"})
			}
		case *ast.ExprStmt:
			all = append(all, mutant{offset(n.Pos()), offset(n.End()), ""})
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				break
			}
			last := n.Results[len(n.Results)-1]
			if id, ok := last.(*ast.Ident); ok && id.Name == "nil" {
				break
			}
			// Where that is no error it does not build, or is noticed at once.
			all = append(all, mutant{offset(last.Pos()), offset(last.End()), "nil"})
		}
		return true
	})
	return all, nil
}

type verdict int

const (
	killed   verdict = iota
	survived         // the tests pass
	invalid          // it does not build
)

// try runs the tests of the packages asked with changed in the place of the file
// path.
func try(dir string, asked []string, path string, changed []byte, run string, limit time.Duration) (verdict, error) {
	file, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		return 0, err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{path: file}})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute) // building takes time too
	defer cancel()
	args := []string{"test", "-vet=off", "-short", "-failfast", "-overlay", overlay, "-timeout", limit.String(), "-run", run}
	out, err := exec.CommandContext(ctx, "go", append(args, asked...)...).CombinedOutput()
	switch {
	case err == nil && bytes.Count(out, []byte("[no tests to run]")) == len(asked):
		return 0, fmt.Errorf("no test of %s is named like %q", asked, run)
	case err == nil:
		return survived, nil
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return invalid, nil
	}
	return killed, nil
}
