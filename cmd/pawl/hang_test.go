package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pawl/config"
	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/server/servertest"
	"pawl/wal/waltest"
)

// hungLife is a daemon in a bubble, on a disk that can hang. Its one door is a
// pipe.
type hungLife struct {
	*daemon
	door *servertest.Listener
	said *output
	stop context.CancelFunc
	over chan error // what run returned
}

// onHungDisk starts a daemon.
func onHungDisk(t *testing.T, disk vfs.FS) *hungLife {
	t.Helper()
	set := config.New("serve")
	if err := set.Flags().Parse([]string{"--dir=data", "--http-addr=", "--admin-addr=", "--loop=portable"}); err != nil {
		t.Fatal(err)
	}
	e, _, _ := testEnv(nil)
	e.store = disk
	if err := set.Load(e.lookup); err != nil {
		t.Fatal(err)
	}
	c := set.Config
	c.Addr = ""
	l := &hungLife{door: servertest.Listen(), said: &output{}, over: make(chan error, 1)}
	level := new(slog.LevelVar)
	var err error
	if l.daemon, err = newDaemon(set, &c, nil, newLogger(l.said, &c, level), level, e); err != nil {
		t.Fatal(err)
	}
	l.doors.resp = []net.Listener{l.door}
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	go func() { l.over <- l.run(ctx, nil) }()
	return l
}

// engine is there when the daemon serves.
func (l *hungLife) engine() *engine.Engine {
	l.setMu.Lock()
	defer l.setMu.Unlock()
	return l.eng
}

// say sends a line, and returns the connection.
func (l *hungLife) say(t *testing.T, line string) net.Conn {
	t.Helper()
	c, err := l.door.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// ends wants the daemon to end with this code after so long, counted from began.
func (l *hungLife) ends(t *testing.T, began time.Time, code int, after time.Duration) {
	t.Helper()
	err := <-l.over
	if got, took := exitCode(err), time.Since(began); got != code || took != after {
		t.Errorf("ended with %d after %v (%v), want %d after %v\n%s", got, took, err, code, after, l.said)
	}
}

// A stop waits for whoever is inside a system call that does not end as long as
// stop.go says, and no longer, wherever the daemon is.
func TestStopOnHangingDisk(t *testing.T) {
	// The goroutine that waits for signals is the process's, not the bubble's.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)

	for name, play := range map[string]func(t *testing.T, disk *waltest.Hanging){
		"while it recovers": func(t *testing.T, disk *waltest.Hanging) {
			l := onHungDisk(t, disk)
			time.Sleep(time.Second)
			l.stop()
			l.ends(t, time.Now(), exitOK, 0)

			release := disk.Hang("read")
			defer release()
			l = onHungDisk(t, disk)
			time.Sleep(time.Second)
			l.stop()
			l.ends(t, time.Now(), exitIO, closeTime)
			l.stopEdges(time.Second) // the process is not there to end them
		},
		"a client's read": func(t *testing.T, disk *waltest.Hanging) {
			l := withReader(t, disk)
			l.stop()
			l.ends(t, time.Now(), exitOK, edgeTime+cutTime)
			if !strings.Contains(l.said.String(), "not everybody has left") {
				t.Errorf("it does not say that somebody is left:\n%s", l.said)
			}
		},
		"a sync of the log": func(t *testing.T, disk *waltest.Hanging) {
			l := onHungDisk(t, disk)
			time.Sleep(time.Second)
			c := l.say(t, "ENQUEUE q x")
			defer c.Close()
			if line, err := bufio.NewReader(c).ReadString('\n'); line != "*2\r\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			release := disk.Hang("datasync")
			defer release()
			time.Sleep(5 * time.Second) // a mark is written where the log is idle, and synced
			l.stop()
			l.ends(t, time.Now(), exitIO, closeTime)
		},
		"a client's read, and the log has failed": func(t *testing.T, disk *waltest.Hanging) {
			l := withReader(t, disk)
			disk.FS.(*waltest.Disk).Inject(func(op waltest.Op) waltest.Fault {
				if op.Kind == "datasync" {
					return waltest.Fault{Err: syscall.EIO}
				}
				return waltest.Fault{}
			})
			began := time.Now()
			c := l.say(t, "ENQUEUE q x")
			defer c.Close()
			l.ends(t, began, exitIO, failTime+cutTime)
			l.engine().Close(t.Context()) // nor it
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, &waltest.Hanging{FS: waltest.NewDisk()}) })
		})
	}
}

// withReader is a daemon with a client who waits for a job's body, which the disk
// does not give before the test is over.
func withReader(t *testing.T, disk *waltest.Hanging) *hungLife {
	t.Helper()
	l := onHungDisk(t, disk)
	time.Sleep(time.Second)
	c := l.say(t, "ENQUEUE q x")
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "*2\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	c.Close()
	l.stop()
	l.ends(t, time.Now(), exitOK, 0)

	l = onHungDisk(t, disk) // which has the body on the disk only
	time.Sleep(time.Second)
	t.Cleanup(disk.Hang("read"))
	c = l.say(t, "FETCH q 1000")
	t.Cleanup(func() { c.Close() })
	synctest.Wait()
	return l
}
