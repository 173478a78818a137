package chip

import (
	"bufio"
	"context"
	"errors"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// heard is a part that sends by itself, on a serial port. Each sample opens the port and
// reads what comes next, so that no reading is old.
type heard struct {
	kept
	conn   *board.SerialConn
	listen func(*bufio.Reader, *driver.Sample) error // returns once it has all points
}

// openHeard checks that the port is there. Whether the part sends only a sample can tell.
func openHeard(ctx context.Context, at board.Serial, baud int, desc device.Description, listen func(*bufio.Reader, *driver.Sample) error) (device.Device, error) {
	conn, err := at.Conn(baud)
	if err != nil {
		return nil, err
	}
	h := &heard{kept: kept{desc: desc, on: conn, setUp: func() error { return nil }}, conn: conn, listen: listen}
	if err := h.find(ctx, conn.Ready); err != nil {
		return nil, err
	}
	return h, nil
}

// Sample blocks until the part has sent all points, which takes up to a few seconds.
func (h *heard) Sample(ctx context.Context) ([]device.Reading, error) {
	readings, err := h.sample(ctx, func(out *driver.Sample) error { return h.listen(bufio.NewReaderSize(h.conn, 256), out) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = device.Faultf(device.Offline, "no %s was heard on %s in time; check that its TX is wired to RX, its supply and the baud rate, that no console is on the port, and that every is 5s or longer: %w", h.desc.Model, h.conn, err)
	}
	return readings, err
}
