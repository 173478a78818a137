package stdio

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSharedGroup: if other users share a site's group, such as staff on macOS or users on some
// Linuxes, they are refused, whatever the socket's mode is. Only root can become another user; for
// other users the test checks only the mode.
func TestSharedGroup(t *testing.T) {
	if path := os.Getenv("STDIO_TEST_SERVE"); path != "" {
		ln, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { io.Copy(io.Discard, os.Stdin); cancel() }()
		Serve(ctx, ln, func(_ context.Context, c net.Conn) { io.WriteString(c, "hello"); c.Close() })
		return
	}
	if path := os.Getenv("STDIO_TEST_DIAL"); path != "" {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if said, _ := io.ReadAll(conn); string(said) != "hello" {
			t.Fatalf("%q", said)
		}
		return
	}
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI runs as root")
		}
		t.Skip("SKIPPED: only root can start a process as another user")
	}
	dir := filepath.Dir(socketPath(t))
	program := filepath.Join(dir, "test")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil || os.WriteFile(program, text, 0o755) != nil || os.Chmod(dir, 0o777) != nil {
		t.Fatal(err)
	}
	as := func(uid, gid uint32, env, path string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestSharedGroup$")
		cmd.Env, cmd.Dir = []string{env + "=" + path}, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		return cmd
	}
	const ann, bob, staff = 61001, 61002, 61020
	for _, tt := range []struct {
		gid      uint32 // of the site
		name     string
		bobEnter bool
	}{{staff, "shared", false}, {ann, "own", true}} {
		path := filepath.Join(dir, tt.name)
		site := as(ann, tt.gid, "STDIO_TEST_SERVE", path)
		until, err := site.StdinPipe()
		if err != nil || site.Start() != nil {
			t.Fatal(err)
		}
		for { // until it listens
			if err := as(ann, tt.gid, "STDIO_TEST_DIAL", path).Run(); err == nil {
				break
			} else if t.Context().Err() != nil {
				t.Fatal(err)
			}
		}
		for _, mode := range []os.FileMode{0, 0o666} {
			if mode != 0 {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := as(bob, tt.gid, "STDIO_TEST_DIAL", path).Run(); (err == nil) != tt.bobEnter {
				t.Errorf("%s group, mode %v: another user: %v", tt.name, mode, err)
			}
		}
		until.Close()
		if err := site.Wait(); err != nil {
			t.Error(err)
		}
	}
}
