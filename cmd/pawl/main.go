// Command pawl is a durable task-queue daemon and its tools.
package main

func main() {}
