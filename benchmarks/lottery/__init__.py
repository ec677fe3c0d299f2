"""The lottery in miniature: does it matter which few questions a small model is trained on?"""
