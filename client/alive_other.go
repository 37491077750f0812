//go:build !unix

package client

// alive cannot look without waiting here.
func (cn *conn) alive() bool { return cn.in.in.Buffered() == 0 }
