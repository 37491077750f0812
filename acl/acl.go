// Package acl says who may do what: users with passwords, the classes of
// commands they may use, and the queues they may use them on.
package acl

// User is one user. Fields come in the next commit; Parse makes one.
type User struct{ Name string }

// Parse makes a user from a name and rules, as ACL SETUSER takes them, for
// example: on >secret ~mail/* +@produce +@work pool=default.
func Parse(name string, rules ...string) (User, error) { panic("not yet") }
