package resp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// isStuck says whether a pass takes too long, of which passing says when it began.
func isStuck(passing, now int64) bool { return passing != 0 && now+1-passing >= stuckAfter }

// relieve gives connections to goroutines while a pass takes too long: those of
// the pass that are not done, if all they wait for is the disk, and those that send
// something until it is over.
func (p *poller) relieve() {
	passing := p.passing.Load()
	if !isStuck(passing, p.s.clock.Load()) {
		return
	}
	p.mu.Lock()
	if p.passing.Load() != passing {
		p.mu.Unlock()
		return
	}
	var turns []turn
	var next []*conn
	var b *batch
	var r remainder
	if p.waiting {
		turns, next, b = p.turns, p.next, p.b
		r = remainder{stage: stageWaiting, began: p.began, lsn: p.lsn}
		p.waiting, p.turns, p.next, p.b, p.burnt = false, nil, nil, new(batch), false
	}
	if !p.standIn {
		p.standIn = true
		p.s.running.Go(func() { p.lookAfter(passing) })
	}
	p.mu.Unlock()
	for i := range turns {
		if t := &turns[i]; !t.done {
			p.hand(b, t, r)
		}
	}
	for _, c := range next {
		p.leave(c)
	}
}

// lookAfter gives all that send something to goroutines, until the pass that
// began at passing is over.
func (p *poller) lookAfter(passing int64) {
	events := make([]unix.EpollEvent, 64)
	for p.passing.Load() == passing {
		n, err := unix.EpollWait(p.epfd, events, standInMillis)
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("resp: epoll_wait: %v", err)) // a bug: the set is ours alone
		}
		for i := range max(n, 0) {
			p.mu.Lock()
			c := p.news(&events[i])
			p.mu.Unlock()
			if c != nil {
				p.leave(c)
			}
		}
	}
	p.mu.Lock()
	p.standIn = false
	p.mu.Unlock()
	p.wake() // run may have found nothing left but this
}
