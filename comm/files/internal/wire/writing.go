package wire

// Messages that change what the server has.

// Create begins an upload, or makes a directory.
type Create struct {
	Name      string
	Perm      uint32
	ModTime   Time // not set: of the commit
	NoReplace bool
	NoSync    bool
	ID        string
}

func (m *Create) fields(c *codec) {
	c.str(&m.Name, MaxName)
	c.u32(&m.Perm)
	m.ModTime.fields(c)
	c.flag(&m.NoReplace)
	c.flag(&m.NoSync)
	c.str(&m.ID, MaxID)
}

// Made is the answer to Mkdir.
type Made struct{ New bool } // it was not there

func (m *Made) fields(c *codec) { c.flag(&m.New) }

// SetAttr changes a directory.
type SetAttr struct {
	Name    string
	Keep    uint32 // permissions that it keeps of those that it has
	ModTime Time   // not set: as it is
}

func (m *SetAttr) fields(c *codec) {
	c.str(&m.Name, MaxName)
	c.u32(&m.Keep)
	m.ModTime.fields(c)
}

// Created is the answer to Create.
type Created struct {
	Handle uint64
	Size   int64 // that is there
}

func (m *Created) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Size)
}

// Put is an upload with one request.
type Put struct {
	Create  Create
	Content []byte
	Kind    string // of the checksum
	Sum     []byte
}

func (m *Put) fields(c *codec) {
	m.Create.fields(c)
	c.blob(&m.Content, MaxSmall)
	c.str(&m.Kind, maxSum)
	c.blob(&m.Sum, maxSum)
}

// Write says that bytes of an upload are in the staging memory, at At.
type Write struct {
	Handle   uint64
	Off, Len int64
	At       int64
}

func (m *Write) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Off)
	c.size(&m.Len)
	c.size(&m.At)
}

// Commit ends an upload.
type Commit struct {
	Handle uint64
	Size   int64
	Kind   string
	Sum    []byte
}

func (m *Commit) fields(c *codec) {
	c.u64(&m.Handle)
	c.size(&m.Size)
	c.str(&m.Kind, maxSum)
	c.blob(&m.Sum, maxSum)
}
