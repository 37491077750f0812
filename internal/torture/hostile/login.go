//go:build linux

package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// guesses has very many connections try passwords, all at once, over and over.
// However many there are, the guesses that are looked at are bounded.
func guesses(ctx context.Context, f *Field) error {
	const patience = time.Minute
	var mu sync.Mutex
	answered := 0
	began := time.Now()
	again, stop := context.WithTimeout(ctx, time.Duration(f.either(2, 15))*time.Second)
	defer stop()
	var guessing sync.WaitGroup
	clients := f.either(100, 500)
	for i := range clients {
		guessing.Go(func() {
			for n := 0; again.Err() == nil; n++ {
				conn, err := net.DialTimeout("tcp", f.Addr, patience)
				if err != nil {
					return // ports that are used up are the attacker's own limit
				}
				unhook := context.AfterFunc(again, func() { conn.Close() })
				r := bufio.NewReader(conn)
				for err == nil {
					user, password := "default", fmt.Sprintf("guess %d %d", i, n)
					if n%2 == 1 {
						user = "nobody"
					}
					var line string
					if _, err = io.WriteString(conn, command("AUTH", user, password)); err == nil {
						line, err = r.ReadString('\n')
					}
					if strings.HasPrefix(line, "-WRONGPASS") {
						mu.Lock()
						answered++
						mu.Unlock()
					}
					n++
				}
				unhook()
				conn.Close()
			}
		})
	}
	guessing.Wait()
	took := time.Since(began).Seconds()
	f.Said = fmt.Sprintf("%d guesses were looked at, %.0f a second", answered, float64(answered)/took)
	// Each connection has one until the first wrong ones are counted, and then all
	// together have ten a second.
	if most := clients + 10*int(took+2); answered > most {
		return fmt.Errorf("%d guesses were looked at in %.1f s, more than %d", answered, took, most)
	}
	return ctx.Err()
}

// heldHandshakes connects to a TLS port and says nothing, half of a hello, or
// what is no TLS at all, and stays. The daemon must hang up on all of them.
func heldHandshakes(ctx context.Context, f *Field) error {
	hello := clientHello()
	openers := []string{"", hello[:len(hello)/2], hello, command("PING"), strings.Repeat("\xa5", 600), "\x16\x03\x01\xff\xff"}
	var mu sync.Mutex
	longest := time.Duration(0)
	var held sync.WaitGroup
	var stays error
	for i := range f.either(100, 500) {
		conn, err := f.dial()
		if err != nil {
			return err
		}
		held.Go(func() {
			began := time.Now()
			if send(conn, openers[i%len(openers)], time.Second) != nil {
				return
			}
			conn.SetReadDeadline(began.Add(time.Minute))
			_, err := io.Copy(io.Discard, conn)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				stays = fmt.Errorf("who opens with %.20q and stays is not cut off in a minute", openers[i%len(openers)])
			}
			longest = max(longest, time.Since(began))
		})
	}
	held.Wait()
	f.Said = fmt.Sprintf("the last one was cut off after %v", longest.Round(time.Second/10))
	return errors.Join(stays, ctx.Err())
}

// clientHello is what a client opens TLS with.
func clientHello() string {
	server, client := net.Pipe()
	defer client.Close()
	go func() {
		tls.Client(client, &tls.Config{ServerName: "localhost"}).Handshake() // which nobody answers
	}()
	buf := make([]byte, 8<<10)
	n, err := server.Read(buf)
	server.Close()
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// handshakes goes through TLS with the daemon, hangs up, and comes again, from
// many connections at a time.
func handshakes(ctx context.Context, f *Field) error {
	for range f.either(2, 60) {
		if err := f.each(ctx, 64, func(_ int, conn net.Conn) error {
			conn.SetDeadline(time.Now().Add(time.Minute))
			secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
			if err := secure.HandshakeContext(ctx); err != nil {
				return err
			}
			return conn.Close()
		}); err != nil {
			return err
		}
		f.Leave()
	}
	return nil
}
