package host

import (
	"bytes"
	"path/filepath"

	"agentsite/device"
)

func findNetwork(root string) []source {
	return file(filepath.Join(root, "proc/net/dev"), parseNetwork,
		device.Point{Name: "network_received", Kind: device.KindMeasurement, Unit: "By", Description: "received over all networks since the computer started"},
		device.Point{Name: "network_sent", Kind: device.KindMeasurement, Unit: "By", Description: "sent over all networks since the computer started"})
}

// parseNetwork sums up the interfaces but for the loopback (proc_pid_net(5)): the
// first count after the name is bytes received, the ninth bytes sent. The two
// lines of headings have no colon.
func parseNetwork(b []byte, values []float64) {
	const received, sent = 0, 8
	values[0], values[1] = 0, 0
	for line := range bytes.Lines(b) {
		name, counts, ok := bytes.Cut(line, []byte(":"))
		if !ok || string(bytes.TrimSpace(name)) == "lo" {
			continue
		}
		values[0] += number(field(counts, received))
		values[1] += number(field(counts, sent))
	}
}
