package ops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device/board/boardtest"
	"agentsite/node/state"

	"periph.io/x/conn/v3/i2c"
)

// reported is a Raspberry Pi with a chip on its bus, two bridged lines and a probe on 1-Wire.
func reported(t *testing.T, configuration string) BoardReportOptions {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/device-tree/model":                              "Raspberry Pi 3 Model B Rev 1.2\x00",
		"proc/sys/kernel/osrelease":                           "6.12.47-v8\n",
		"proc/sys/kernel/arch":                                "aarch64\n",
		"proc/meminfo":                                        "MemTotal:         926000 kB\nMemAvailable:     700000 kB\n",
		"proc/uptime":                                         "100.00 90.00\n",
		"etc/os-release":                                      "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n",
		"boot/firmware/config.txt":                            "# mine\ndtparam=i2c_arm=on\npassword=secret\n",
		"sys/bus/w1/devices/28-0316a2795c1f/name":             "28-0316a2795c1f\n",
		"sys/bus/w1/devices/28-0316a2795c1f/temperature":      "21500\n",
		"sys/devices/platform/soc/soc:firmware/get_throttled": "50005\n",
		"sys/class/thermal/thermal_zone0/type":                "cpu-thermal\n",
		"sys/class/thermal/thermal_zone0/temp":                "48000\n",
		"agentsite.yaml":                                      configuration, "dev/i2c-1": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chip := boardtest.Header()
	chip.React(func(offset int, level bool, drive func(int, bool)) {
		if offset == 5 {
			drive(6, level)
		}
	})
	return BoardReportOptions{
		DoctorOptions: DoctorOptions{
			Config: filepath.Join(root, "agentsite.yaml"), Drivers: allDrivers(), Folder: state.Folder(t.TempDir()), Root: root,
		},
		Board: boardtest.Machine{
			I2C: map[int]i2c.Bus{1: &chips{at: []uint16{0x76}}}, Chips: []*boardtest.Chip{chip}, Root: root,
		}.Board(),
		Version: "v1",
	}
}

func TestBoardReport(t *testing.T) {
	o := reported(t, "site: { name: my-house }\ndevices: { bedroom: { driver: relay, pin: GPIO17, safe: off } }\n")
	o.Loop = "GPIO5,GPIO6"
	r, err := ReportBoard(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	text := r.Text()
	t.Log("\n" + text)
	for _, want := range []string{
		"Raspberry Pi 3 Model B Rev 1.2", "Debian GNU/Linux 13 (trixie)", "6.12.47-v8 aarch64", "904 MB, 683 MB free",
		"dtparam=i2c_arm=on", "i2c-1", "BMP280", "1-wire/28-…", "cpu-thermal", "relay", "under-voltage",
		"GPIO5 to GPIO6: 20 of 20 levels arrived, 20 edges",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, private := range []string{"my-house", "bedroom", "0316a2795c1f", "secret", o.Root, string(o.Folder)} {
		if strings.Contains(text, private) {
			t.Errorf("the report has %q", private)
		}
	}
}

// TestBoardReportMovesNothing: a line of the configuration is not driven, nor one of a configuration that is wrong.
func TestBoardReportMovesNothing(t *testing.T) {
	for _, configuration := range []string{
		"site: { name: a }\ndevices: { heater: { driver: relay, pin: GPIO5, safe: off } }\n",
		"site: { name: a }\ndevices: { heater: { driver: relay, pin: P1_29, safe: off } }\n",
		"site: { name: a }\ndevices: { heater: { driver: relay, pin: GPIO6, safe: off } }\n",
		"devices: 5\n",
	} {
		o := reported(t, configuration)
		o.Loop = "GPIO5,GPIO6"
		if r, err := ReportBoard(t.Context(), o); err == nil {
			t.Errorf("%s\n%s", configuration, r.Text())
		}
		o.Loop = ""
		if _, err := ReportBoard(t.Context(), o); err != nil {
			t.Errorf("without a loop: %v", err)
		}
	}
}
