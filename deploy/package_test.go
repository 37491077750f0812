//go:build linux

package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pawl/internal/torture/daemon"
)

// tool is the path of a program of the system, or the test skips.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is missing", name)
	}
	return path
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tree lists what is below dir, directories with a slash.
func tree(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if info.IsDir() {
			name += "/"
		}
		found[name] = info.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var once sync.Once

// built is the path of the daemon's program, built once for all tests that need
// one and removed by TestMain.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(builtDir, "pawl")
	once.Do(func() {
		if err := daemon.Build(context.Background(), path, ""); err != nil {
			t.Fatal(err)
		}
	})
	return path
}

var builtDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "pawl-deploy-*")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		builtDir = dir
		return m.Run()
	}())
}

// TestPackage builds the package, installs it into a root of its own, runs what
// it has installed, upgrades and removes it. Nothing of the machine is touched:
// dpkg is told another root, and the scripts, which make a user and a store, are
// checked by the shell only.
func TestPackage(t *testing.T) {
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("builds and installs the Debian package: set PAWL_E2E=1")
	}
	dpkg := tool(t, "dpkg")
	tool(t, "dpkg-deb")
	out := t.TempDir()
	command(t, "sh", "package.sh", "1.2.3", out)
	names, err := filepath.Glob(filepath.Join(out, "pawl_1.2.3_*.deb"))
	if err != nil || len(names) != 1 {
		t.Fatalf("got packages %q, %v", names, err)
	}
	deb := names[0]
	for _, want := range []string{"Package: pawl", "Version: 1.2.3", "Depends: passwd, util-linux"} {
		if info := command(t, "dpkg-deb", "--info", deb); !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s", want, info)
		}
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Log("dpkg installs as root only: the package is unpacked instead")
		command(t, "dpkg-deb", "--extract", deb, root)
	} else {
		// Without the scripts: they would need a whole system in that root.
		command(t, dpkg, "--root="+root, "--force-not-root,depends,script-chrootless", "--unpack", stripped(t, deb))
		command(t, dpkg, "--root="+root, "--force-depends", "--configure", "pawl")
	}
	installed := tree(t, root)
	for name, mode := range map[string]fs.FileMode{
		"usr/bin/pawl": 0o755, "lib/systemd/system/pawl.service": 0o644, "etc/pawl/pawl.toml": 0o640,
		"usr/share/doc/pawl/README.md": 0o644, "usr/share/doc/pawl/docs/start.md": 0o644, "usr/share/doc/pawl/THIRD-PARTY": 0o644,
		"usr/share/doc/pawl/examples/alerts.yml": 0o644, "usr/share/doc/pawl/examples/grafana.json": 0o644,
	} {
		if got, ok := installed[name]; !ok || got != mode {
			t.Errorf("%s: installed %t with mode %04o, want %04o", name, ok, got, mode)
		}
	}
	pawl := filepath.Join(root, "usr/bin/pawl")
	if got := command(t, pawl, "version", "--short"); got != "1.2.3\n" {
		t.Errorf("the installed program is version %q, want 1.2.3", got)
	}
	if got := command(t, pawl, "config", "check", "--config", filepath.Join(root, "etc/pawl/pawl.toml")); got != "ok\n" {
		t.Errorf("the installed configuration: %s", got)
	}
	if os.Geteuid() == 0 {
		command(t, dpkg, "--root="+root, "--force-depends", "--remove", "pawl")
		left := tree(t, root)
		if _, ok := left["usr/bin/pawl"]; ok {
			t.Error("the program is still there after the removal")
		}
		if _, ok := left["etc/pawl/pawl.toml"]; !ok {
			t.Error("the configuration went with the program, want it to stay until the purge")
		}
		command(t, dpkg, "--root="+root, "--force-depends", "--purge", "pawl")
		for name := range tree(t, root) {
			if strings.Contains(name, "pawl") && !strings.HasPrefix(name, "var/lib/dpkg/") {
				t.Errorf("left after the purge: %s", name)
			}
		}
	}
}

// stripped is the package without its scripts.
func stripped(t *testing.T, deb string) string {
	t.Helper()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "pawl.deb")
	command(t, "dpkg-deb", "--raw-extract", deb, dir)
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if err := os.Remove(filepath.Join(dir, "DEBIAN", script)); err != nil {
			t.Fatal(err)
		}
	}
	command(t, "dpkg-deb", "--root-owner-group", "-Znone", "--build", dir, out)
	return out
}

// TestScriptsAreShell: the scripts of the package are what sh can read.
func TestScriptsAreShell(t *testing.T) {
	sh := tool(t, "sh")
	for _, script := range []string{"package.sh", "debian/postinst", "debian/prerm", "debian/postrm"} {
		command(t, sh, "-n", script)
	}
}

// TestUnit: systemd reads the unit without a complaint, and the daemon takes the
// command line in it.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile("pawl.service")
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/pawl (.*)$`).FindSubmatch(text)
	if start == nil {
		t.Fatal("no ExecStart")
	}
	dir, binary := t.TempDir(), built(t)
	// All flags are right: it gets as far as finding no data.
	args := strings.Fields(string(start[1]))
	for i, arg := range args {
		switch arg {
		case "/etc/pawl/pawl.toml":
			args[i] = "pawl.toml"
		case "/var/lib/pawl":
			args[i] = filepath.Join(dir, "nothing")
		}
	}
	args = append(args, "--addr=", "--unix="+filepath.Join(dir, "s"), "--http-addr=", "--admin-addr=")
	cmd := exec.Command(binary, args...)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 73 {
		t.Errorf("pawl %s: exit code %d (%v), want 73 for no data\n%s", strings.Join(args, " "), code, err, out)
	}

	analyze := tool(t, "systemd-analyze")
	// It wants the program to be there, so it is shown a copy with another path.
	unit := filepath.Join(dir, "pawl.service")
	if err := os.WriteFile(unit, bytes.ReplaceAll(text, []byte("/usr/bin/pawl "), []byte(binary+" ")), 0o644); err != nil {
		t.Fatal(err)
	}
	verify := exec.Command(analyze, "verify", "--man=no", unit)
	out, err = verify.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("pawl.service")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestDockerfile reads the file as a builder would: no engine runs here, so what
// cannot be checked is whether the base image has what the steps use.
func TestDockerfile(t *testing.T) {
	file, err := os.Open("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	stages := []string{}
	var command, user string
	known := []string{"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(known, word) {
			t.Errorf("unknown instruction in %q", line)
		}
		switch word {
		case "FROM":
			if image, stage, ok := strings.Cut(rest, " AS "); ok {
				stages = append(stages, stage)
				if !strings.HasPrefix(image, "golang:"+string(version[1])+"-") {
					t.Errorf("built with %s, want Go %s", image, version[1])
				}
			}
		case "COPY":
			var sources []string
			from := ""
			for _, part := range strings.Fields(rest) {
				if name, ok := strings.CutPrefix(part, "--from="); ok {
					from = name
				} else if !strings.HasPrefix(part, "--") {
					sources = append(sources, part)
				}
			}
			for _, source := range sources[:len(sources)-1] {
				if from != "" {
					if !slices.Contains(stages, from) {
						t.Errorf("%q copies from a stage that there is not", line)
					}
				} else if _, err := os.Stat(filepath.Join("..", source)); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		case "USER":
			user = rest
		case "CMD":
			command = rest
		}
	}
	if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("runs as %q", user)
	}
	var args []string
	if err := json.Unmarshal([]byte(command), &args); err != nil || len(args) == 0 || args[0] != "serve" {
		t.Fatalf("CMD %s: %v", command, err)
	}
	out, err := exec.Command(built(t), append([]string{"config", "check"}, args[1:]...)...).CombinedOutput()
	if err != nil || string(out) != "ok\n" {
		t.Errorf("the flags of CMD: %v\n%s", err, out)
	}
}
