"""Cameras: devices, image messages without cv_bridge, pairing by stamp."""
