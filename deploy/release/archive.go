package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// epoch returns the time of all files of a release.
func epoch() (time.Time, error) {
	n, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil || n < 1 {
		return time.Time{}, errors.New("SOURCE_DATE_EPOCH is not set to the seconds since 1970 of the release")
	}
	return time.Unix(n, 0).UTC(), nil
}

// archive writes a folder as a ZIP file, the same bytes each time.
func archive(file, folder string) error {
	date, err := epoch()
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is no regular file", path)
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(folder), path)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: date}
		head.SetMode(info.Mode())
		w, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(w, from)
		return err
	})
	return errors.Join(err, z.Close(), f.Close())
}
