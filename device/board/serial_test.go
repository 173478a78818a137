package board_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// TestSerialOfATest is a port that is no file.
func TestSerialOfATest(t *testing.T) {
	near, far := net.Pipe()
	conn, err := boardtest.Machine{Serial: func() (board.SerialPort, error) { return near, nil }}.Board().Serial().Conn(9600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := conn.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	go far.Write([]byte("x"))
	b := make([]byte, 2)
	if n, err := conn.Read(b); n != 1 || err != nil {
		t.Errorf("got %d bytes and %v", n, err)
	}
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := conn.Read(b); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, and Read says %v", err)
	}
	if err := conn.Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("in use, and Begin says %v", err)
	}
	conn.End()
	if _, err := far.Write(b); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("End leaves the port open: %v", err)
	}
}

func TestSerialMistakes(t *testing.T) {
	for _, port := range []string{"", "serial0", "/etc/passwd", "/dev/../etc/passwd", "/dev/", "/dev//x", "/dev/a b", "/dev/./x"} {
		faulted(t, board.Serial{Port: port}.Validate(), device.Invalid, "like /dev/serial0")
	}
	for _, port := range []string{"/dev/ttyUSB0", "/dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0", "/dev/serial/by-path/platform-3f980000.usb-usb-0:1.2:1.0-port0"} {
		if err := (board.Serial{Port: port}).Validate(); err != nil {
			t.Error(err)
		}
	}
	_, err := board.New().Serial().Conn(9601)
	faulted(t, err, device.Invalid, "baud: 9601")
	if resources := (board.Serial{Port: "/dev/ttyAMA0"}).Resources(); len(resources) != 3 || resources[1].Name != "GPIO14" {
		t.Errorf("%+v", resources)
	}
	if resources := (board.Serial{Port: "/dev/ttyUSB0"}).Resources(); len(resources) != 1 {
		t.Errorf("%+v", resources)
	}
}
