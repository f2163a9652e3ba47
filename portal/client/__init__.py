"""``vp``, the portal from the shell: check an archive before it is sent, send it, and look at what became of it."""

RELEASE = "0.1.0"  # of portal and program alike
PORTAL_VERSION = "Portal-Version"  # the header of every answer of the API but those to uploads
