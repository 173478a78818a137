package chip

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

// program is a folder in which rpicam-still is this script, and ok.jpg a picture. The
// script is run there.
func program(t *testing.T, script string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ok.jpg"), picture.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, cameraProgram), []byte("#!/bin/sh\ncd '"+folder+"'\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":/usr/bin:/bin")
	return folder
}

func newCamera(t *testing.T) driver.Config {
	t.Helper()
	d, _ := driver.Find(Drivers(noBoard()), "camera")
	return d.Config()
}

func TestCamera(t *testing.T) {
	folder := program(t, `echo "$@" > args; exec cat ok.jpg`)
	dev := opened(t, newCamera(t))
	got, err := dev.(device.Camera).Capture(t.Context(), "picture")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := jpeg.DecodeConfig(bytes.NewReader(got.Data)); err != nil || c.Width != 64 || got.MIME != "image/jpeg" {
		t.Errorf("%s %+v %v", got.MIME, c, err)
	}
	args, err := os.ReadFile(filepath.Join(folder, "args"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "--camera 0 --width 1024 --height 768 --timeout 1000 --nopreview --encoding jpg --quality 80 --thumb none --output -\n"
	if string(args) != want {
		t.Errorf("it was called with %swant %s", args, want)
	}
	t.Run("conformance", func(t *testing.T) {
		devicetest.Run(t, func(t *testing.T) device.Device { return opened(t, newCamera(t)) })
	})
	dev.Close()
	_, err = dev.(device.Camera).Capture(t.Context(), "picture")
	faulted(t, err, device.Offline, "closed")
	mistakes(t, "camera", map[string]func(*cameraConfig){
		"camera:": func(c *cameraConfig) { c.Camera = -1 },
		"width:":  func(c *cameraConfig) { c.Width = 4608 },
		"height:": func(c *cameraConfig) { c.Height = 0 },
	})
}

func TestCameraWithoutAPicture(t *testing.T) {
	for script, says := range map[string]string{
		`echo INFO >&2; echo "ERROR: *** no cameras available ***" >&2; exit 255`: "no cameras available",
		`echo "Available cameras"`:       "JPEG",
		`exec head -c 100 ok.jpg`:        "JPEG",
		`exit 0`:                         "JPEG",
		`cat ok.jpg; exit 1`:             "exit status 1",
		`yes error | head -c 99999 >&2`:  "camera 0",
		`trap "" TERM INT; exec sleep 9`: "100ms",
	} {
		t.Run(script, func(t *testing.T) {
			program(t, script)
			dev := opened(t, newCamera(t)).(*camera)
			if strings.Contains(says, "100ms") {
				dev.patience = 100 * time.Millisecond
			}
			_, err := dev.Capture(t.Context(), "picture")
			faulted(t, err, device.Offline, says)
		})
	}
	program(t, `exec cat /dev/zero`) // ends when nobody listens any more
	_, err := opened(t, newCamera(t)).(*camera).Capture(t.Context(), "picture")
	faulted(t, err, device.Unavailable, "more than 512 KB")
}

// TestCameraWithoutItsProgram says what to install, also where it was there first.
func TestCameraWithoutItsProgram(t *testing.T) {
	folder := program(t, "")
	t.Setenv("PATH", folder)
	dev := opened(t, newCamera(t)).(*camera)
	if err := os.Remove(filepath.Join(folder, cameraProgram)); err != nil {
		t.Fatal(err)
	}
	_, err := dev.Capture(t.Context(), "picture")
	faulted(t, err, device.Offline, "rpicam-apps")
	_, err = newCamera(t).Open(t.Context())
	faulted(t, err, device.Offline, "rpicam-apps")
}

// TestCameraIsLeftAlone ends the context while a picture is taken, and another call
// waits for its turn: no process is left.
func TestCameraIsLeftAlone(t *testing.T) {
	folder := program(t, "echo $$ > pid; exec sleep 60")
	fifo := filepath.Join(folder, "pid")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	dev := opened(t, newCamera(t)).(*camera)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	capture := func() {
		_, err := dev.Capture(ctx, "picture")
		ended <- err
	}
	go capture()
	text, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	go capture()
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled, and Capture says %v", err)
		}
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the program is still there: %v", err)
	}
}
