"""Credit for any composition of trees and continuous parts; the README of this folder has the map."""

from .attribution import attribute, plan, walks

__all__ = ["attribute", "plan", "walks"]
