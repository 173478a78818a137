package stdio

import (
	"context"
	"io"
)

// Pipe copies between a client's standard streams and a socket until either side
// ends or ctx does. The client's closing its end is the normal end. A message
// that is under way when it closes is still answered.
func Pipe(ctx context.Context, in io.Reader, out io.Writer, socket io.ReadWriteCloser) error {
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	go func() {
		io.Copy(socket, in)
		if c, ok := socket.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		} else {
			socket.Close()
		}
	}()
	_, err := io.Copy(out, socket)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
