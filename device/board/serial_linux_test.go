package board_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/board"

	"golang.org/x/sys/unix"
)

// pty opens a pseudo terminal, whose other end is a port like any other.
func pty(t *testing.T) (far *os.File, port string) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { far.Close() })
	if err := unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return far, "/dev/pts/" + strconv.Itoa(n)
}

func TestSerial(t *testing.T) {
	far, port := pty(t)
	at := board.New().Serial()
	at.Port = port
	conn, err := at.Conn(9600)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ready(); err != nil {
		t.Fatal(err)
	}
	const odd = "$GP\r\n\x03\x04\x11\x13\x7f\xff" // what a terminal would act on
	if _, err := far.WriteString(odd); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for b := make([]byte, 64); len(got) < len(odd); {
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	if string(got) != odd {
		t.Errorf("got %q, want %q", got, odd)
	}
	other, err := at.Conn(9600)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	faulted(t, other.Ready(), device.Busy, "another program")
	other.End()
	conn.End()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := conn.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing came, and Read says %v", err)
	}
	conn.End()

	if err := conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ready(); err != nil {
		t.Fatal(err)
	}
	far.Close()
	_, err = conn.Read(make([]byte, 1))
	faulted(t, err, device.Offline, "disconnected")
	conn.End()
	if err := conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer conn.End()
	_, err = conn.Read(make([]byte, 1))
	faulted(t, err, device.Offline, "there is no "+port)
}

// TestSerialSettings are eight bits, no parity, one stop bit, raw, at the baud rate.
func TestSerialSettings(t *testing.T) {
	_, port := pty(t)
	p, err := board.OpenSerial(port, board.SerialMode{Baud: 57600})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := unix.IoctlGetTermios(int(p.(interface{ Fd() uintptr }).Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint32(unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B57600); got.Cflag != want {
		t.Errorf("cflag is %#o, want %#o", got.Cflag, want)
	}
	if got.Iflag != 0 || got.Oflag != 0 || got.Lflag != 0 {
		t.Errorf("it is not raw: %#o %#o %#o", got.Iflag, got.Oflag, got.Lflag)
	}
}

// TestSerialMode are parity and stop bits.
func TestSerialMode(t *testing.T) {
	_, port := pty(t)
	for mode, want := range map[board.SerialMode]uint32{
		{Baud: 9600, Even: true}:     unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B9600 | unix.PARENB,
		{Baud: 9600, Odd: true}:      unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B9600 | unix.PARENB | unix.PARODD,
		{Baud: 2400, TwoStops: true}: unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B2400 | unix.CSTOPB,
	} {
		p, err := board.OpenSerial(port, mode)
		if err != nil {
			t.Fatal(err)
		}
		got, err := unix.IoctlGetTermios(int(p.(interface{ Fd() uintptr }).Fd()), unix.TCGETS)
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		// A pseudo-terminal has no parity: its driver clears the bit.
		if mask := ^uint32(unix.PARENB); got.Cflag&mask != want&mask {
			t.Errorf("%+v: cflag is %#o, want %#o", mode, got.Cflag, want)
		}
	}
}

func TestSerialThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := board.OpenSerial(file, board.SerialMode{Baud: 9600}); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("a file is taken for a port: %v", err)
	}
}
