// Package statetest tests package state: a reference Model with random histories
// (Random), and a reader of the scripts in state/testdata (Scripts).
package statetest
