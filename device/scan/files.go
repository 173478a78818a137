package scan

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/kernel"
	"agentsite/device/sysfs"
)

// kernel lists the parts with a kernel driver.
func (s *Scan) kernel(ctx context.Context) []Found {
	var found []Found
	for _, l := range kernel.List(ctx, string(s.Root)) {
		f := Found{Where: l.Where, What: l.Name, Confidence: Certain, Devices: []Device{{deviceName(l.Name), l.YAML}}}
		if len(l.Points) > 0 {
			f.Says = "the kernel reads " + strings.Join(l.Points, ", ")
		} else {
			// The load of an output cannot be detected.
			f.Confidence, f.Says, f.Devices[0].Name = Candidate, "for a servo, a dimmer or a motor", "pwm"
		}
		found = append(found, f)
	}
	return found
}

// files lists the cameras and serial ports.
func (s *Scan) files() []Found {
	return slices.Concat(s.cameras(), s.serial())
}

// cameras lists the video devices that capture images. It skips codecs, image processors
// and a USB camera's second node.
func (s *Scan) cameras() []Found {
	var found []Found
	for _, folder := range s.Root.Glob("sys/class/video4linux/video*") {
		name, node := sysfs.Text(filepath.Join(folder, "name")), "/dev/"+filepath.Base(folder)
		if index := sysfs.Text(filepath.Join(folder, "index")); index != "0" && index != "" || slices.ContainsFunc([]string{"codec", "isp", "pispbe", "hevc"}, func(part string) bool { return strings.Contains(name, part) }) {
			continue
		}
		f := Found{Where: node, What: "camera " + name, Confidence: Certain}
		if strings.Contains(name, "unicam") || strings.Contains(name, "rp1-cfe") {
			f.Says = "a camera on the board's camera connector; rpicam-still captures its images"
		}
		if _, ok := driver.Find(s.Drivers, "camera"); ok {
			f.Devices = []Device{{"camera", "{ driver: camera }"}}
		}
		found = append(found, f)
	}
	return found
}

// serial lists the serial ports. A part on one cannot be detected without writing to it.
func (s *Scan) serial() []Found {
	var found []Found
	var named []string // ports with an alias such as serial0
	console := s.Root.Text("proc/cmdline")
	for _, pattern := range []string{"dev/serial[0-9]", "dev/ttyAMA*", "dev/ttyUSB*", "dev/ttyACM*"} {
		for _, path := range s.Root.Glob(pattern) {
			name := filepath.Base(path)
			if slices.Contains(named, name) {
				continue
			}
			f := Found{Where: "/dev/" + name, What: "serial port", Confidence: Candidate, Says: "for a GPS receiver, a PMS5003 and the like"}
			if to, err := os.Readlink(path); err == nil {
				named = append(named, filepath.Base(to))
			}
			if strings.Contains(console, "console="+name) {
				f.Says = "used by the kernel's console; remove console=" + name + " from cmdline.txt to use it"
			}
			for _, own := range []string{"gps", "pms5003"} {
				if _, ok := driver.Find(s.Drivers, own); ok {
					f.Devices = append(f.Devices, Device{own, "{ driver: " + own + ", port: /dev/" + name + " }"})
				}
			}
			found = append(found, f)
		}
	}
	return found
}

// gpio lists the controllers and their free lines. It requests no line. Without the
// permission to open the controllers, the error names the group that has it.
func (s *Scan) gpio() ([]Found, error) {
	var taken []board.Pin
	for resource := range s.Taken {
		taken = append(taken, board.Pin(resource))
	}
	controllers, err := s.Board.Controllers(taken...)
	if err != nil && len(s.Root.Glob("dev/gpiochip*")) == 0 {
		return nil, nil // a machine without lines
	}
	var found []Found
	for _, c := range controllers {
		found = append(found, Found{
			Where: "/dev/" + c.Name, What: fmt.Sprintf("%d GPIO lines of %s", c.Lines, c.Label), Confidence: Certain, Says: free(c.Free),
		})
	}
	return found, err
}

// free lists at most 32 lines.
func free(lines []board.Pin) string {
	const most = 32
	if len(lines) == 0 {
		return "none is free"
	}
	text := "free:"
	for _, pin := range lines[:min(most, len(lines))] {
		text += " " + string(pin)
	}
	if len(lines) > most {
		text += fmt.Sprintf(" and %d more", len(lines)-most)
	}
	return text
}

// deviceName derives a device's name from the name of a part.
func deviceName(part string) string {
	const most = 20 // room for a number
	name := device.SuggestName(part)
	return cmp.Or(strings.Trim(name[:min(len(name), most)], "-"), "sensor")
}

// Unique makes the names of all found devices unique, also among the taken names.
func Unique(found []Found, taken []string) {
	used := slices.Clone(taken)
	for _, f := range found {
		for i, d := range f.Devices {
			name := d.Name
			for n := 2; slices.Contains(used, name); n++ {
				name = d.Name + "-" + strconv.Itoa(n)
			}
			f.Devices[i].Name = name
			used = append(used, name)
		}
	}
}
