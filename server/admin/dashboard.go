package admin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

//go:embed web
var web embed.FS

// asset is one embedded file.
type asset struct {
	body []byte
	kind string
	tag  string // of its content: embedded files have no time
}

var assets = func() map[string]asset {
	all := map[string]asset{}
	kinds := map[string]string{
		".html": "text/html; charset=utf-8",
		".js":   "text/javascript; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".svg":  "image/svg+xml",
	}
	err := fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := web.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		at := "/assets/" + path.Base(name)
		if path.Base(name) == "index.html" {
			at = "/"
		}
		all[at] = asset{body, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil { // cannot happen: the files are in the binary
		panic(err)
	}
	return all
}()

// dashboard serves the embedded page, its script and its style.
func dashboard() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("ETag", a.tag)
		h.Set("Cache-Control", "no-cache")
		if r.Header.Get("If-None-Match") == a.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(a.body)
	})
}
