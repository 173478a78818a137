package stdio

import (
	"context"
	"errors"
	"io"
	"syscall"
)

// ErrHungUp is returned where the site has closed the connection.
var ErrHungUp = errors.New("the site has closed the connection: it has ended, too many programs are connected to it, or what it was sent was no message; start it, or try again later")

// Pipe copies between a client's standard streams and a socket until either side or ctx ends.
// The end of the client's input is the normal end; the socket's end before that is ErrHungUp.
// A request that is running when the input ends is still answered.
func Pipe(ctx context.Context, in io.Reader, out io.Writer, socket io.ReadWriteCloser) error {
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { socket.Close() })
	defer stop()
	over := make(chan struct{})
	go func() {
		if _, err := io.Copy(socket, in); err == nil {
			close(over)
		}
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
	if err == nil || errors.Is(err, syscall.ECONNRESET) {
		select {
		case <-over:
			return nil
		default:
			return ErrHungUp
		}
	}
	return err
}

// Join combines a client's standard input and output. Close unblocks a Read and leaves both
// open: one more message is read from the input then, and lost.
func Join(in io.Reader, out io.Writer) io.ReadWriteCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err) // nil is the normal end
	}()
	return joined{r, out}
}

type joined struct {
	*io.PipeReader
	io.Writer
}
