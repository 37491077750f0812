//go:build !unix

package resp

func (l lane) readPiece(nc stream, p []byte) (int, error)  { return nc.Read(p) }
func (l lane) writePiece(nc stream, p []byte) (int, error) { return nc.Write(p) }
