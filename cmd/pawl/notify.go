package main

import (
	"net"
	"os"
	"strconv"
	"time"
)

// notifier tells a service manager how the daemon is, by the protocol of
// sd_notify(3). Without one all its methods do nothing.
type notifier struct{ socket string }

func newNotifier() notifier { return notifier{os.Getenv("NOTIFY_SOCKET")} }

// send is best effort: a daemon that runs must not fail for want of a listener.
func (n notifier) send(state string) {
	if n.socket == "" {
		return
	}
	name := n.socket
	if name[0] == '@' {
		name = "\x00" + name[1:] // the abstract namespace
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	c.Write([]byte(state))
}

func (n notifier) ready()             { n.send("READY=1\nSTATUS=serving") }
func (n notifier) stopping()          { n.send("STOPPING=1\nSTATUS=draining") }
func (n notifier) status(text string) { n.send("STATUS=" + text) }
func (n notifier) alive()             { n.send("WATCHDOG=1") }

// moreTime asks for another d before the start, or the stop, counts as hung.
func (n notifier) moreTime(d time.Duration) {
	n.send("EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10))
}

// watchdog is how often the service manager wants to hear alive, halved; 0 is
// not at all.
func (n notifier) watchdog() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond / 2
}
