package chip

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// cameraConfig is the YAML of camera.
type cameraConfig struct {
	Camera int `json:"camera,omitempty" jsonschema:"which camera, 0 or 1 on a board with two, 0 when not written; rpicam-still --list-cameras shows them"`
	Width  int `json:"width" jsonschema:"pixels across, 64 to 1920"`
	Height int `json:"height" jsonschema:"pixels down, 64 to 1920"`
}

const (
	cameraProgram = "rpicam-still"
	// cameraTime is enough for any picture. The program itself would wait for ever
	// for a camera that does not answer any more.
	cameraTime = 15 * time.Second
	// cameraSettles is the time that exposure and white balance take.
	cameraSettles = time.Second
	cameraMost    = 512 << 10 // bytes of a picture
	cameraTells   = 64 << 10  // bytes of messages
)

// Validate finds mistakes without hardware.
func (c *cameraConfig) Validate() error {
	switch {
	case c.Camera < 0 || c.Camera > 9:
		return device.Faultf(device.Invalid, "camera: it is 0 to 9, not %d", c.Camera)
	case c.Width < 64 || c.Width > 1920:
		return device.Faultf(device.Invalid, "width: it is 64 to 1920 pixels, not %d", c.Width)
	case c.Height < 64 || c.Height > 1920:
		return device.Faultf(device.Invalid, "height: it is 64 to 1920 pixels, not %d", c.Height)
	}
	return nil
}

// Resources returns the camera.
func (c *cameraConfig) Resources() []driver.Resource {
	return []driver.Resource{{Name: "camera " + strconv.Itoa(c.Camera)}}
}

// Describe needs no hardware.
func (c *cameraConfig) Describe() device.Description {
	return device.Description{Model: "Raspberry Pi camera", Points: []device.Point{
		{Name: "picture", Kind: device.KindImage, Description: "what the camera sees now"},
	}}
}

// Open finds the program. Only a capture shows whether there is a camera.
func (c *cameraConfig) Open(ctx context.Context) (device.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(cameraProgram); err != nil {
		return nil, noProgram(err)
	}
	return &camera{config: *c, patience: cameraTime, busy: device.NewMutex()}, nil
}

func noProgram(err error) error {
	return device.Faultf(device.Offline, "there is no %s here; install the package rpicam-apps: %w", cameraProgram, err)
}

// camera takes each picture by a run of the program, and is off in between.
type camera struct {
	config   cameraConfig
	patience time.Duration
	busy     device.Mutex // while a picture is taken

	closed bool // guarded by busy
}

// Describe describes the camera as its owner wrote it.
func (c *camera) Describe() device.Description { return c.config.Describe() }

// Capture returns a JPEG of at most 512 KB. It blocks for about two seconds, and 15 s
// at most once other calls are done.
func (c *camera) Capture(ctx context.Context, point string) (device.Image, error) {
	if point != "picture" {
		return device.Image{}, device.Faultf(device.Invalid, "%.40q is not a camera of this device", point)
	}
	if err := c.busy.LockContext(ctx); err != nil {
		return device.Image{}, err
	}
	defer c.busy.Unlock()
	if c.closed {
		return device.Image{}, device.Faultf(device.Offline, "the camera is closed")
	}
	data, err := c.run(ctx)
	if err != nil {
		return device.Image{}, err
	}
	return device.Image{MIME: "image/jpeg", Data: data, At: time.Now()}, nil
}

// run returns the program's output, once the program has exited.
func (c *camera) run(ctx context.Context) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	picture, says := bounded{most: cameraMost}, bounded{most: cameraTells}
	cmd := exec.CommandContext(limited, cameraProgram,
		"--camera", strconv.Itoa(c.config.Camera),
		"--width", strconv.Itoa(c.config.Width), "--height", strconv.Itoa(c.config.Height),
		"--timeout", strconv.FormatInt(cameraSettles.Milliseconds(), 10),
		"--nopreview", "--encoding", "jpg", "--quality", "80", "--thumb", "none", "--output", "-")
	cmd.Stdout, cmd.Stderr = &picture, &says
	cmd.WaitDelay = time.Second // for a child that outlives it with the pipes
	err := cmd.Run()
	data := picture.data
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, device.Faultf(device.Offline, "camera %d captured no image in %v; check its ribbon cable at both ends: %w", c.config.Camera, c.patience, err)
	case errors.Is(err, exec.ErrNotFound):
		return nil, noProgram(err)
	case picture.full:
		return nil, device.Faultf(device.Unavailable, "the image has more than %d KB; use a smaller width and height", cameraMost>>10)
	case err != nil:
		return nil, device.Faultf(device.Offline, "camera %d captured no image (%w, %.200s); check that it is connected, that no other program uses it, and that the user is in the group video", c.config.Camera, err, says.lastLine())
	case !bytes.HasPrefix(data, []byte("\xFF\xD8\xFF")) || !bytes.HasSuffix(data, []byte("\xFF\xD9")):
		return nil, device.Faultf(device.Offline, "the output of %s for camera %d is not a complete JPEG; run it by hand: %s --output x.jpg", cameraProgram, c.config.Camera, cameraProgram)
	}
	return data, nil
}

// Close waits for a picture that is being taken.
func (c *camera) Close() error {
	c.busy.Lock()
	defer c.busy.Unlock()
	c.closed = true
	return nil
}

// bounded stores a limited number of bytes; more is an error, which
// closes the program's pipe.
type bounded struct {
	data []byte
	most int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.most {
		b.full = true
		return 0, errors.New("it writes too much")
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// lastLine returns the last line, which usually has the error.
func (b *bounded) lastLine() string {
	lines := strings.Split(strings.TrimSpace(string(b.data)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
