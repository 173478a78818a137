package stdio

import (
	"context"
	"errors"
	"io"
	"syscall"
)

// ErrHungUp says that the far side of a pipe ended it.
var ErrHungUp = errors.New("the site has closed the connection: it has ended, or too many programs are connected to it; start it, or try again later")

// Pipe copies between a client's standard streams and a socket until either side
// ends or ctx does. The client's closing its end is the normal end; the socket's
// end before that is ErrHungUp. A message that is under way when the client closes
// is still answered.
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

// Join makes a client's standard input and output one stream. Closing it ends a Read that
// waits, and leaves both as they are: one more message is taken from the input then, and
// lost.
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
