//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The card's partitions: a FAT one, two slots for versions of the image, and the data
// partition, which grows to the card's end.
const (
	bootPartition = 1
	firstSlot     = 2
	dataPartition = 4

	// signature is the disk identifier in the image's partition table, at signatureAt.
	signature   = 0x61736974
	signatureAt = 440
	entriesAt   = 446
	entrySize   = 16
	sectorSize  = 512
)

// card is the SD card or disk with the image.
type card struct{ name string } // such as mmcblk0

// findCard waits for the card of this system: the first disk with the signature.
func findCard(timeout time.Duration) (card, error) {
	for started := time.Now(); time.Since(started) < timeout; time.Sleep(100 * time.Millisecond) {
		disks, _ := filepath.Glob("/sys/block/*")
		for _, d := range disks {
			c := card{filepath.Base(d)}
			if table, err := c.table(); err == nil && binary.LittleEndian.Uint32(table[signatureAt:]) == signature {
				if _, err := os.Stat(c.partition(dataPartition)); err == nil {
					return c, nil
				}
			}
		}
	}
	return card{}, fmt.Errorf("no disk has the image's partitions: write the image to the card again")
}

// table reads the card's partition table.
func (c card) table() ([]byte, error) {
	f, err := os.Open("/dev/" + c.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sector := make([]byte, sectorSize)
	_, err = f.ReadAt(sector, 0)
	return sector, err
}

// partition returns the path of a partition's device.
func (c card) partition(n int) string {
	if last := c.name[len(c.name)-1]; last >= '0' && last <= '9' {
		return fmt.Sprintf("/dev/%sp%d", c.name, n)
	}
	return fmt.Sprintf("/dev/%s%d", c.name, n)
}

// slotDevice is an unmounted partition.
type slotDevice struct{ *os.File }

func (c card) openSlot(n int) (disk, error) {
	f, err := os.OpenFile(c.partition(n), os.O_RDWR, 0)
	return slotDevice{f}, err
}

func (s slotDevice) Sync() error {
	return errors.Join(s.File.Sync(), unix.IoctlSetInt(int(s.Fd()), unix.BLKFLSBUF, 0))
}

// open mounts the card's file systems, without permission to execute files on them.
func (c card) open() error {
	if err := c.grow(); err != nil {
		logf("the data partition does not grow to the card's end: %v", err)
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME
	if err := syscall.Mount(c.partition(dataPartition), dataFolder, "ext4", flags, "errors=remount-ro"); err != nil {
		return fmt.Errorf("its data partition cannot be mounted (%w): save your files on another computer, and write the image again", err)
	}
	if err := growFS(dataFolder, c.partition(dataPartition)); err != nil {
		logf("the data partition's file system does not grow: %v", err)
	}
	if err := syscall.Mount(c.partition(bootPartition), bootFolder, "vfat", flags, "umask=0077,flush,errors=remount-ro"); err != nil {
		return fmt.Errorf("its boot partition cannot be mounted: %w", err)
	}
	for _, f := range []string{"agentsite", "agentsite-update", "agentsite-update/inbox"} {
		path := filepath.Join(dataFolder, f)
		if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if f != "agentsite-update" {
			os.Chown(path, siteUser, siteUser)
		}
	}
	return nil
}

// grow extends the last partition to the card's end. It writes one sector, so that a power
// failure leaves the old table or the new one.
func (c card) grow() error {
	table, err := c.table()
	if err != nil {
		return err
	}
	disk, err := sysNumber("/sys/block", c.name, "size") // always in sectors of 512 bytes
	if err != nil {
		return err
	}
	entry := table[entriesAt+(dataPartition-1)*entrySize:][:entrySize]
	first := uint64(binary.LittleEndian.Uint32(entry[8:]))
	most := min(disk-first, 1<<32-1) / 2048 * 2048
	if had := uint64(binary.LittleEndian.Uint32(entry[12:])); most <= had {
		return nil
	}
	binary.LittleEndian.PutUint32(entry[12:], uint32(most))
	f, err := os.OpenFile("/dev/"+c.name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(table, 0); err != nil {
		return err
	}
	// The kernel refuses to read the whole table again while a partition is in use.
	p := unix.BlkpgPartition{Start: int64(first * sectorSize), Length: int64(most * sectorSize), Pno: dataPartition}
	arg := unix.BlkpgIoctlArg{Op: unix.BLKPG_RESIZE_PARTITION, Datalen: int32(unsafe.Sizeof(p)), Data: (*byte)(unsafe.Pointer(&p))}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.BLKPG, uintptr(unsafe.Pointer(&arg)))
	if errno != 0 {
		return errno
	}
	return f.Sync()
}

// growFS extends a mounted ext4 file system to its partition. The file system's journal
// makes this safe against a power failure.
func growFS(at, device string) error {
	const resize = 0x40086610 // EXT4_IOC_RESIZE_FS, which takes a number of blocks
	sectors, err := sysNumber("/sys/class/block", filepath.Base(device), "size")
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err != nil {
		return err
	}
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	blocks := sectors * sectorSize / uint64(fs.Bsize)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), resize, uintptr(unsafe.Pointer(&blocks))); errno != 0 {
		return errno
	}
	return nil
}

func sysNumber(path ...string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
