package board

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var speeds = map[int]uint32{
	1200: unix.B1200, 2400: unix.B2400, 4800: unix.B4800, 9600: unix.B9600,
	19200: unix.B19200, 38400: unix.B38400, 57600: unix.B57600, 115200: unix.B115200,
}

// openSerial opens a port, raw, without waiting for a carrier. The lock excludes programs that also
// take it, and ends with the file. TIOCEXCL would outlive the file if another program has the port
// open.
func openSerial(port string, mode SerialMode) (SerialPort, error) {
	fd, err := unix.Open(port, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", port, err)
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = raw(fd, mode)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%s: %w", port, err)
	}
	return serialFile{os.NewFile(uintptr(fd), port)}, nil
}

// serialFile is an open port. Close drops what was not sent yet, for which the kernel would wait.
type serialFile struct{ *os.File }

func (f serialFile) Close() error {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCOFLUSH) })
	}
	return f.File.Close()
}

func raw(fd int, mode SerialMode) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	speed := speeds[mode.Baud]
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | speed
	if mode.Even || mode.Odd {
		t.Cflag |= unix.PARENB
		t.Iflag |= unix.INPCK | unix.IGNPAR // a byte with a wrong parity is dropped
	}
	if mode.Odd {
		t.Cflag |= unix.PARODD
	}
	if mode.TwoStops {
		t.Cflag |= unix.CSTOPB
	}
	t.Ispeed, t.Ospeed = speed, speed
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// mayUse checks the permission without opening: opening a serial port moves its lines.
func mayUse(path string) bool { return unix.Access(path, unix.R_OK|unix.W_OK) == nil }
