package chip

import (
	"bufio"
	"context"
	"errors"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// serialSensor is a sensor that transmits unasked on a serial port. Each sample opens the port and
// reads the next messages, so that no reading is old.
type serialSensor struct {
	managedChip
	conn   *board.SerialConn
	listen func(*bufio.Reader, *driver.Sample) error // returns once it has all points
}

// openSerialSensor checks that the port exists. Only a sample shows whether the sensor transmits.
func openSerialSensor(ctx context.Context, at board.Serial, baud int, desc device.Description, listen func(*bufio.Reader, *driver.Sample) error) (device.Device, error) {
	conn, err := at.Conn(baud)
	if err != nil {
		return nil, err
	}
	h := &serialSensor{managedChip: managedChip{desc: desc, on: conn, setUp: func() error { return nil }}, conn: conn, listen: listen}
	if err := h.find(ctx, conn.Ready); err != nil {
		return nil, err
	}
	return h, nil
}

// Sample blocks until the sensor has sent all points, up to a few seconds.
func (h *serialSensor) Sample(ctx context.Context) ([]device.Reading, error) {
	readings, err := h.sample(ctx, func(out *driver.Sample) error { return h.listen(bufio.NewReaderSize(h.conn, 256), out) })
	if errors.Is(err, context.DeadlineExceeded) {
		err = device.Faultf(device.Offline, "no data of a %s on %s in time; check that its TX is wired to RX, its supply and the baud rate, and that no console is on the port: %w", h.desc.Model, h.conn, err)
	}
	return readings, err
}
