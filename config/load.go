package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// A Set is a Config together with what every value came from.
type Set struct {
	Config  Config
	Options []Option // in the order of the flags

	fs    *pflag.FlagSet
	given map[string]string // values on the command line, by name
}

// New makes a Set of defaults. Flags gives its flag set, to parse the command
// line with; Load does the rest.
func New(name string) *Set {
	s := &Set{fs: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	s.fs.SortFlags = false
	s.fs.Usage = func() {}
	define(s.fs, &s.Config)
	return s
}

// Flags is the flag set; the caller may add flags of its own, which are not
// options.
func (s *Set) Flags() *pflag.FlagSet { return s.fs }

// Load makes a Set from a command line without the subcommand. Words that are
// no flags are an error. lookup is os.LookupEnv or like it.
func Load(args []string, lookup func(string) (string, bool)) (*Set, error) {
	s := New("config")
	if err := s.fs.Parse(args); err != nil {
		return nil, err
	}
	if s.fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", s.fs.Arg(0))
	}
	return s, s.Load(lookup)
}

// Load fills what the flags, parsed before, have left open: from the
// environment, then from the file. All that is wrong is reported at once. It
// must be called once.
func (s *Set) Load(lookup func(string) (string, bool)) error {
	known := New("").fs // tells options from flags that the caller added
	origin := map[string]string{}
	s.given = map[string]string{}
	s.fs.Visit(func(f *pflag.Flag) { origin[f.Name], s.given[f.Name] = "flag", text(f.Value) })
	var errs []error
	known.VisitAll(func(f *pflag.Flag) {
		o := Option{Name: f.Name}
		if text, ok := lookup(o.Env()); ok && origin[f.Name] == "" {
			if err := s.fs.Set(f.Name, text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.Env(), bare(err)))
			}
			origin[f.Name] = "env " + o.Env()
		}
	})
	if path := s.Config.File; path != "" {
		errs = append(errs, s.loadFile(path, known, origin)...)
	}
	if f := s.fs.Lookup("backend"); f.Value.String() == "memory" {
		s.Config.Ephemeral = true
		if origin["ephemeral"] == "" {
			origin["ephemeral"] = origin["backend"]
		}
	}
	s.Config.Password, _ = lookup(passwordEnv)
	if path := s.Config.PasswordFile; path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("password-file: %w", err))
		} else if s.Config.Password = strings.TrimRight(string(data), "\r\n"); s.Config.Password == "" {
			errs = append(errs, fmt.Errorf("password-file: %s is empty", path))
		}
	}
	known.VisitAll(func(d *pflag.Flag) {
		f := s.fs.Lookup(d.Name)
		o := Option{Name: f.Name, Usage: f.Usage, Reload: reloadable[f.Name], Value: text(f.Value), Default: f.DefValue, Origin: "default"}
		if from := origin[f.Name]; from != "" {
			o.Origin = from
		}
		s.Options = append(s.Options, o)
	})
	return errors.Join(append(errs, s.Config.validate()...)...)
}

// text is a value as Set takes it again.
func text(v pflag.Value) string {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return v.String()
}

// Again loads from the same command line what environment and file say now.
func (s *Set) Again(lookup func(string) (string, bool)) (*Set, error) {
	fresh := New("again")
	for name, value := range s.given {
		if fresh.fs.Lookup(name) == nil {
			continue // a flag of the caller's own
		}
		if err := fresh.fs.Set(name, value); err != nil {
			return nil, err
		}
	}
	return fresh, fresh.Load(lookup)
}

// Option is the option of that name, the zero Option when there is none.
func (s *Set) Option(name string) Option {
	for _, o := range s.Options {
		if o.Name == name {
			return o
		}
	}
	return Option{}
}

// The tables of the file that are no options, and the variable that is none.
const (
	usersKey    = "users"
	accountsKey = "accounts"
	passwordEnv = "PAWL_PASSWORD"
)

func (s *Set) loadFile(path string, known *pflag.FlagSet, origin map[string]string) (errs []error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return []error{err} // names the path
	}
	var file map[string]any
	if _, err := toml.Decode(string(data), &file); err != nil {
		var parse toml.ParseError
		if errors.As(err, &parse) {
			return []error{fmt.Errorf("%s:%d: %s", path, parse.Position.Line, parse.Message)}
		}
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	keys := []string{usersKey, accountsKey}
	known.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" { // a file cannot name another one
			keys = append(keys, Option{Name: f.Name}.Key())
		}
	})
	for _, key := range slices.Sorted(maps.Keys(file)) {
		value := file[key]
		if key == usersKey || key == accountsKey {
			secrets, err := loadSecrets(path, key, value)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
			if key == usersKey {
				s.Config.Users = secrets
			} else {
				s.Config.Accounts = secrets
			}
			continue
		}
		if !slices.Contains(keys, key) {
			hint := ""
			if near := Nearest(key, keys); near != "" {
				hint = fmt.Sprintf(", did you mean %s?", near)
			}
			errs = append(errs, fmt.Errorf("%s: unknown key %s%s", path, key, hint))
			continue
		}
		text, err := scalar(value)
		name := strings.ReplaceAll(key, "_", "-")
		if err == nil && origin[name] == "" {
			origin[name] = "file " + path
			err = bare(s.fs.Set(name, text))
		} else if err == nil {
			err = bare(known.Set(name, text)) // outvoted, but it must be right
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", path, key, err))
		}
	}
	return errs
}

// loadSecrets reads a table of names and lines. The file must not be one that
// others can write.
func loadSecrets(path, key string, value any) (map[string]string, error) {
	table, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s must be a table of name = \"text\"", key)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("holds %s but can be written by others (mode %04o); chmod 600 it", key, info.Mode().Perm())
	}
	lines := make(map[string]string, len(table))
	for name, line := range table {
		text, ok := line.(string)
		if !ok {
			return nil, fmt.Errorf("%s.%s must be a string", key, name)
		}
		lines[name] = text
	}
	return lines, nil
}

// scalar is a TOML value as a flag takes it.
func scalar(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64, bool:
		return fmt.Sprint(v), nil
	case []any:
		words := make([]string, len(v))
		for i, word := range v {
			text, ok := word.(string)
			if !ok || strings.ContainsAny(text, ",\"\n") {
				return "", errors.New("want an array of plain strings")
			}
			words[i] = text
		}
		return strings.Join(words, ","), nil
	}
	return "", fmt.Errorf("want a string, a number or true or false, not %T", value)
}

// bare takes pflag's wording off an error about a value: where the value came
// from is said by the caller.
func bare(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("%q: %w", invalid.GetValue(), errors.Unwrap(invalid))
	}
	return err
}

// A Change is an option that differs between two Sets.
type Change struct {
	Name     string
	Old, New string
	Reload   bool // a running daemon can take it
}

// With is s with one option changed, checked like any other. origin is what its
// Origin will say. Nothing is read from files or the environment.
func (s *Set) With(name, value, origin string) (*Set, error) {
	fresh := New("with")
	for _, o := range s.Options {
		if o.Value != o.Default {
			if err := fresh.fs.Set(o.Name, o.Value); err != nil {
				return nil, err
			}
		}
	}
	fresh.Config.Users, fresh.Config.Accounts, fresh.Config.Password = s.Config.Users, s.Config.Accounts, s.Config.Password
	fresh.Options, fresh.given = slices.Clone(s.Options), s.given
	f := fresh.fs.Lookup(name)
	if f == nil {
		return nil, fmt.Errorf("unknown option %s", name)
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err := list.Replace(nil); err != nil { // Set would add
			return nil, err
		}
	}
	if err := fresh.fs.Set(name, value); err != nil {
		return nil, bare(err)
	}
	for i := range fresh.Options {
		if o := &fresh.Options[i]; o.Name == name {
			o.Value, o.Origin = text(f.Value), origin
		}
	}
	return fresh, errors.Join(fresh.Config.validate()...)
}

// Taking is s with what fresh says where a running daemon can change: options
// that are Reload, users, accounts and the password. The rest stays. It is an
// error when the two do not go together, such as an address that others still
// reach and users that are gone.
func (s *Set) Taking(fresh *Set) (*Set, error) {
	next := s
	for _, c := range fresh.Changes(s) {
		if o := fresh.Option(c.Name); c.Reload && o.Name != "" {
			var err error
			if next, err = next.With(o.Name, o.Value, o.Origin); err != nil {
				return nil, err
			}
		}
	}
	if next == s {
		next = &Set{Config: s.Config, Options: s.Options, fs: s.fs, given: s.given}
	}
	next.Config.Users, next.Config.Accounts, next.Config.Password = fresh.Config.Users, fresh.Config.Accounts, fresh.Config.Password
	return next, errors.Join(next.Config.validate()...)
}

// Changes are the options that differ between old and s, with the tables users
// and accounts, and the password, as one each. Their contents are not shown.
func (s *Set) Changes(old *Set) (changes []Change) {
	for i, o := range s.Options {
		if was := old.Options[i].Value; was != o.Value {
			changes = append(changes, Change{o.Name, was, o.Value, o.Reload})
		}
	}
	for _, t := range []struct {
		name     string
		old, new map[string]string
	}{{usersKey, old.Config.Users, s.Config.Users}, {accountsKey, old.Config.Accounts, s.Config.Accounts}} {
		if !maps.Equal(t.old, t.new) {
			changes = append(changes, Change{Name: t.name, Old: fmt.Sprintf("%d of them", len(t.old)), New: fmt.Sprintf("%d of them", len(t.new)), Reload: true})
		}
	}
	if old.Config.Password != s.Config.Password {
		changes = append(changes, Change{Name: "password", Old: "another", New: "a new one", Reload: true})
	}
	return changes
}
