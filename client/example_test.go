package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"pawl/client"
	"pawl/server/resp"
)

// exampleDaemon gives the address of a fresh daemon, and how to stop it. A
// program of yours has the address of its own.
func exampleDaemon() (addr string, stop func()) {
	t := &exampleReporter{}
	dir := t.TempDir()
	d := &daemon{dir: filepath.Join(dir, "data"), sock: filepath.Join(dir, "s")}
	d.start(t, resp.Options{})
	return d.sock, func() {
		d.stop()
		os.RemoveAll(dir)
	}
}

type exampleReporter struct{}

func (*exampleReporter) Fatal(args ...any) { log.Fatal(args...) }

func (*exampleReporter) TempDir() string {
	dir, err := os.MkdirTemp("", "pawl-example-*")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func Example() {
	addr, stop := exampleDaemon()
	defer stop()
	ctx := context.Background()

	c := client.New(client.Options{Addr: addr})
	defer c.Close()
	if _, err := c.Enqueue(ctx, client.Job{Queue: "mail", Payload: []byte("hello")}); err != nil {
		log.Fatal(err)
	}
	// From here on the job survives any crash of the daemon.
	jobs, err := c.Fetch(ctx, client.FetchOptions{Queues: []string{"mail"}, Lease: time.Minute, Wait: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range jobs {
		fmt.Printf("%s, attempt %d\n", job.Payload, job.Attempt)
		if err := c.Ack(ctx, job.Lease); err != nil {
			log.Fatal(err)
		}
	}
	// Output: hello, attempt 1
}

// A key makes repeating safe: after an error with an open outcome, just send
// the job again.
func ExampleClient_Enqueue_unique() {
	addr, stop := exampleDaemon()
	defer stop()
	ctx := context.Background()
	c := client.New(client.Options{Addr: addr})
	defer c.Close()

	invoice := client.Job{Queue: "mail", Payload: []byte("invoice 4711"), Unique: "invoice-4711", UniqueFor: time.Hour}
	first, err := c.Enqueue(ctx, invoice)
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.Enqueue(ctx, invoice)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Duplicate, again.Duplicate, first.ID == again.ID)
	// Output: false true true
}

func ExampleClient_EnqueueAll() {
	addr, stop := exampleDaemon()
	defer stop()
	ctx := context.Background()
	c := client.New(client.Options{Addr: addr})
	defer c.Close()

	results, err := c.EnqueueAll(ctx, []client.Job{
		{Queue: "mail", Payload: []byte("now")},
		{Queue: "mail", Payload: []byte("tomorrow"), Delay: 24 * time.Hour},
		{Queue: "", Payload: []byte("nowhere")},
	})
	if err != nil {
		log.Fatal(err) // the exchange as a whole
	}
	for _, r := range results {
		fmt.Println(r.Err)
	}
	// Output:
	// <nil>
	// <nil>
	// ERR queue name must not be empty
}

func ExampleWorker() {
	addr, stop := exampleDaemon()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	c := client.New(client.Options{Addr: addr})
	defer c.Close()
	for _, address := range []string{"a@example.org", "not an address"} {
		if _, err := c.Enqueue(ctx, client.Job{Queue: "mail", Payload: []byte(address)}); err != nil {
			log.Fatal(err)
		}
	}

	left := 2
	worker := client.Worker{
		Client: c,
		Queues: []string{"mail"},
		Log:    quiet,
		Handler: func(ctx context.Context, job *client.Delivery) error {
			if left--; left == 0 {
				cancel() // only so that this example ends
			}
			if string(job.Payload) == "not an address" {
				return client.Discard(errors.New("no such address"))
			}
			fmt.Printf("sent to %s\n", job.Payload)
			return nil
		},
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	stats, err := c.Stats(context.Background(), "mail")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d dead\n", stats.Dead)
	// Output:
	// sent to a@example.org
	// 1 dead
}
