"""Tasks. Each folder has the geometry, scene, score and demonstrations of one task."""
