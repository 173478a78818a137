package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"agentsite/device/testbed"

	"golang.org/x/sys/unix"
)

// radio is the board's Bluetooth controller, on a serial line that a pseudo-terminal emulates.
var radio struct {
	mu sync.Mutex
	*testbed.Radio
	line *os.File // the kernel's end; without a reference, Go would close it, and the controller be gone
}

// advertise replaces the advertisers near the board, if text has some, and returns how many advertisements were
// reported. The first call attaches the controller.
func advertise(text string) (reports int, err error) {
	var all []testbed.RadioAdvert
	for line := range strings.Lines(text) {
		a, err := testbed.ParseAdvert(line)
		if err != nil {
			return 0, err
		}
		all = append(all, a)
	}
	radio.mu.Lock()
	defer radio.mu.Unlock()
	if radio.Radio == nil {
		if radio.Radio, err = attachRadio(); err != nil {
			return 0, err
		}
	}
	if len(all) > 0 {
		radio.Advertise(all)
	}
	return radio.Reports(), nil
}

// unplugRadio takes the controller away. The next call of advertise attaches another.
func unplugRadio() error {
	radio.mu.Lock()
	defer radio.mu.Unlock()
	if radio.Radio == nil {
		return nil
	}
	radio.Radio = nil
	defer radio.line.Close()
	// The kernel ends with the controller while that still answers.
	return unix.IoctlSetPointerInt(int(radio.line.Fd()), unix.TIOCSETD, 0) // N_TTY
}

// attachRadio makes the kernel's hci_uart drive a pseudo-terminal, as hciattach(1) does with a serial line.
func attachRadio() (*testbed.Radio, error) {
	const (
		lineHCI  = 15         // N_HCI
		setProto = 0x400455c8 // HCIUARTSETPROTO
		protoH4  = 0
	)
	if err := mount("devpts", "/dev/pts"); err != nil {
		return nil, err
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd()) // blocking from here on
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlock: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("number: %w", err)
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	raw := unix.Termios{Cflag: unix.CS8 | unix.CREAD | unix.B115200}
	raw.Cc[unix.VMIN] = 1
	if err := unix.IoctlSetTermios(int(line.Fd()), unix.TCSETS, &raw); err != nil {
		return nil, fmt.Errorf("raw: %w", err)
	}
	r := new(testbed.Radio)
	go func() {
		fmt.Println("guest: the radio ended:", r.Serve(master, time.Second))
		master.Close()
	}()
	if err := unix.IoctlSetPointerInt(int(line.Fd()), unix.TIOCSETD, lineHCI); err != nil {
		return nil, fmt.Errorf("line discipline: %w", err)
	}
	if err := unix.IoctlSetInt(int(line.Fd()), setProto, protoH4); err != nil {
		return nil, fmt.Errorf("protocol: %w", err)
	}
	radio.line = line
	return r, nil
}
