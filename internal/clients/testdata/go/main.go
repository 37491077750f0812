// Command go runs the Redis clients of Go beyond go-redis through what every
// client must be able to do. It is a module of its own, so that the daemon's has
// nothing to do with them. Arguments: client, port, TLS port, authority's
// certificate. Each step is printed once it has passed.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
)

// client is one connection, or a pool of them, of the user worker; its name is
// the client's.
type client interface {
	// call gives the reply: string, int64, []any, map[string]any or nil.
	call(words ...string) (any, error)
	// pipeline gives the replies of commands that are sent at once.
	pipeline(commands [][]string) ([]any, error)
	// transaction gives the reply of EXEC.
	transaction(commands [][]string) ([]any, error)
	close()
}

// dial connects to an address, over TLS when conf is not nil.
type dial func(addr string, conf *tls.Config) (client, error)

func main() {
	log.SetFlags(0)
	name, port, tlsPort, authority := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	connect, ok := map[string]dial{"redigo": dialRedigo, "rueidis": dialRueidis, "radix": dialRadix}[name]
	if !ok {
		log.Fatalf("no client %s", name)
	}
	if err := play(name, connect, "127.0.0.1:"+port, "127.0.0.1:"+tlsPort, authority); err != nil {
		log.Fatal(err)
	}
	fmt.Println("done", version(name))
}

func passed(step string) { fmt.Println("step", step) }

// play is the dialogue of all clients.
func play(name string, connect dial, addr, tlsAddr, authority string) error {
	r, err := connect(addr, nil)
	if err != nil {
		return err
	}
	defer r.close()
	for _, c := range []struct{ command, want string }{{"PING", "PONG"}, {"ACL WHOAMI", "worker"}, {"CLIENT GETNAME", name}} {
		if got, err := r.call(strings.Fields(c.command)...); err != nil || got != c.want {
			return fmt.Errorf("%s: got %v, %v", c.command, got, err)
		}
	}
	passed("login")
	if err := life(r, name); err != nil {
		return err
	}
	passed("enqueue")
	passed("wait")
	passed("ack")

	var many [][]string
	for i := range 10000 {
		many = append(many, []string{"ENQUEUE", name + "-many", fmt.Sprint(i)})
	}
	ids := make(map[any]bool)
	replies, err := r.pipeline(many)
	for _, reply := range replies {
		ids[reply.([]any)[1]] = true
	}
	if err != nil || len(ids) != len(many) {
		return fmt.Errorf("pipeline: got %d jobs, %v", len(ids), err)
	}
	passed("pipeline")
	both, err := r.transaction([][]string{{"ENQUEUE", name + "-tx", "a"}, {"ENQUEUE", name + "-tx", "b"}})
	if err != nil || len(both) != 2 {
		return fmt.Errorf("transaction: got %v, %v", both, err)
	}
	passed("transaction")

	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	conf := &tls.Config{RootCAs: x509.NewCertPool()}
	conf.RootCAs.AppendCertsFromPEM(pem)
	secure, err := connect(tlsAddr, conf)
	if err != nil {
		return err
	}
	defer secure.close()
	if err := life(secure, name+"-tls"); err != nil {
		return err
	}
	passed("tls")

	fmt.Println("restart")
	if _, err := fmt.Scanln(new(string)); err != nil {
		return err
	}
	// The connections are dead. A resend must not enqueue twice: that is what
	// UNIQUE is for.
	var first any
	for range 100 {
		if first, err = r.call("ENQUEUE", name+"-after", "x", "UNIQUE", "k"); err == nil {
			break
		}
	}
	again, err := pairs(r.call("ENQUEUE", name+"-after", "x", "UNIQUE", "k"))
	if err != nil || again["task_id"] != first.([]any)[1] || again["duplicate"] != int64(1) {
		return fmt.Errorf("after the restart: got %v and %v, %v", first, again, err)
	}
	stats, err := pairs(r.call("MOXY.STATS", name+"-many"))
	if err != nil || stats["ready"] != int64(len(many)) {
		return fmt.Errorf("after the restart: got %v, %v", stats, err)
	}
	passed("restart")
	return nil
}

// life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
func life(r client, queue string) error {
	const payload = "\x00\r\n\xff"
	job, err := pairs(r.call("ENQUEUE", queue, payload))
	if err != nil {
		return err
	}
	got, err := pairs(r.call("FETCH", queue, "60000"))
	if err != nil || got["payload"] != payload || got["task_id"] != job["task_id"] {
		return fmt.Errorf("FETCH: got %q, %v", got, err)
	}
	if ok, err := r.call("ACK", got["lease_id"].(string)); err != nil || ok != "OK" {
		return fmt.Errorf("ACK: got %v, %v", ok, err)
	}
	if ok, err := r.call("ACK", got["lease_id"].(string)); err == nil || !strings.HasSuffix(err.Error(), "lease does not exist") {
		return fmt.Errorf("a second ACK: got %v, %v", ok, err)
	}
	if none, err := r.call("FETCH", queue, "60000"); err != nil || none != nil {
		return fmt.Errorf("FETCH of nothing: got %v, %v", none, err)
	}
	type answer struct {
		job map[string]any
		err error
	}
	late := make(chan answer, 1)
	go func() {
		job, err := pairs(r.call("FETCH", queue, "60000", "WAIT", "30000"))
		late <- answer{job, err}
	}()
	for {
		info, err := pairs(r.call("QUEUE", "INFO", queue))
		if err != nil {
			return err
		}
		if info["waiting"] == int64(1) {
			break
		}
	}
	if _, err := r.call("ENQUEUE", queue, "late"); err != nil {
		return err
	}
	a := <-late
	if a.err != nil || a.job["payload"] != "late" {
		return fmt.Errorf("FETCH … WAIT: got %q, %v", a.job, a.err)
	}
	_, err = r.call("ACK", a.job["lease_id"].(string))
	return err
}

// pairs is a reply of names and values as a map. With RESP3, QUEUE INFO is one
// already.
func pairs(reply any, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	if m, ok := reply.(map[string]any); ok {
		return m, nil
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, errors.New("neither an array nor a map")
	}
	m := make(map[string]any)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i].(string)] = list[i+1]
	}
	return m, nil
}
