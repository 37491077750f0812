package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Server is one that Start has started, on a free port of this machine with a
// temporary directory for its data.
type Server struct {
	Target Target
	cmd    *exec.Cmd
	dir    string
	output bytes.Buffer
	done   chan struct{} // closed when the process has ended
}

// StartOptions say what to start.
type StartOptions struct {
	Kind string // pawl, pawl-http, redis or beanstalkd
	// Dir is below which the data goes; empty is the system's directory for
	// temporary files. It should be on the disk to be measured.
	Dir string
	// Sync is always or never. What is compared must be the same for all.
	Sync string
	// Pawl is the path of the pawl binary; empty is this process's.
	Pawl string
	// Flags are further ones for pawl serve.
	Flags []string
}

// Start starts a server and waits until it answers. The caller stops it.
func Start(ctx context.Context, o StartOptions) (s *Server, err error) {
	// Somebody may take the free port in the moment before the server does.
	for range 5 {
		if s, err = start(ctx, o); !errors.Is(err, errEnded) {
			break
		}
	}
	return s, err
}

// errEnded is in the error of a server that ended before it answered.
var errEnded = errors.New("ended at once")

func start(ctx context.Context, o StartOptions) (*Server, error) {
	dir, err := os.MkdirTemp(o.Dir, "pawl-bench-*")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, done: make(chan struct{})}
	addr, err := freeAddr()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	_, port, _ := net.SplitHostPort(addr)
	always := o.Sync != "never"
	ready := dialReady
	switch o.Kind {
	case "pawl", "pawl-http":
		binary := o.Pawl
		if binary == "" {
			if binary, err = os.Executable(); err != nil {
				return nil, errors.Join(err, os.RemoveAll(dir))
			}
		}
		httpAddr, err := freeAddr()
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		adminAddr, err := freeAddr()
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		sync := "always"
		if !always {
			sync = "never"
		}
		args := []string{"serve", "--dir", filepath.Join(dir, "data"), "--addr", addr, "--http-addr", httpAddr, "--admin-addr", adminAddr, "--sync", sync, "--log-level", "warn"}
		s.cmd = exec.Command(binary, append(args, o.Flags...)...)
		s.Target = Pawl{Addr: addr}
		ready = pawlReady
		if o.Kind == "pawl-http" {
			s.Target = PawlHTTP{Addr: httpAddr, Namespace: "bench"}
			ready = func(ctx context.Context, _ string) error {
				if err := pawlReady(ctx, addr); err != nil {
					return err
				}
				token, err := newToken(ctx, adminAddr, "bench")
				s.Target = PawlHTTP{Addr: httpAddr, Namespace: "bench", Token: token}
				return err
			}
		}
	case "redis":
		fsync := "always"
		if !always {
			fsync = "no"
		}
		s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--daemonize", "no")
		s.Target = Redis{Addr: addr}
	case "beanstalkd":
		args := []string{"-l", "127.0.0.1", "-p", port, "-b", dir}
		if always {
			args = append(args, "-f", "0")
		} else {
			args = append(args, "-F")
		}
		s.cmd = exec.Command("beanstalkd", args...)
		s.Target = Beanstalkd{Addr: addr}
	default:
		return nil, errors.Join(fmt.Errorf("cannot start %q, only pawl, pawl-http, redis, beanstalkd", o.Kind), os.RemoveAll(dir))
	}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", o.Kind, err), os.RemoveAll(dir))
	}
	go func() {
		s.cmd.Wait()
		close(s.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx, addr)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.done:
			return nil, errors.Join(fmt.Errorf("%s %w: %s", o.Kind, errEnded, strings.TrimSpace(s.output.String())), os.RemoveAll(dir))
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w", o.Kind, err), s.Stop())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(15 * time.Second):
		s.cmd.Process.Kill()
		<-s.done
	}
	return os.RemoveAll(s.dir)
}

// freeAddr is an address of loopback that was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func dialReady(ctx context.Context, addr string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	return w.Close()
}

// pawlReady asks for something that has to look at jobs.
func pawlReady(ctx context.Context, addr string) error {
	w, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer w.Close()
	w.command([]byte("STATS"), []byte("bench"))
	if err := w.Flush(); err != nil {
		return err
	}
	return w.skip()
}

// newToken makes a token for a namespace by lmstfy's admin API.
func newToken(ctx context.Context, adminAddr, namespace string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+adminAddr+"/token/"+namespace+"?description=bench", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", err
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &made); err != nil || made.Token == "" {
		return "", fmt.Errorf("no token from %s: %s %.80s", adminAddr, response.Status, body)
	}
	return made.Token, nil
}
